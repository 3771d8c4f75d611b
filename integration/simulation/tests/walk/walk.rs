//! The operations of a walk.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::Selection;
use lariat_cluster::Cluster;
use lariat_core::ObjectKey;
use serde_json::{Value, json};
use tokio::time::{self, Instant, sleep};

use crate::faults::any_fault;
use crate::objects::{NAMESPACES, config_maps, version_of};
use crate::outages::Backup;
use crate::program::{Options, Program};

/// The longest a write, a load, a start or a stop may take.
const LONGEST: Duration = Duration::from_secs(600);

/// The lines of operations that are shown with a violation.
const LINES: usize = 60;

pub(crate) struct Walk {
    pub(crate) cluster: Cluster,
    pub(crate) options: Options,
    pub(crate) program: Program,
    pub(crate) runs: bool,
    pub(crate) selection: Selection,
    /// The uids and versions of the program's last writes, as far as its cache promises to show them.
    pub(crate) own: BTreeMap<ObjectKey, (String, u64)>,
    pub(crate) random: fastrand::Rng,
    pub(crate) backup: Option<Backup>,
    /// Whether a backup was restored: until the program has noticed it, what it writes has smaller versions.
    pub(crate) restored: bool,
    pub(crate) violations: Vec<String>,
    began: Instant,
    log: Vec<String>,
}

impl Walk {
    /// Walks by a seed; returns violations, the first with the operations before it.
    pub(crate) async fn run(seed: u64) -> Vec<String> {
        let mut walk = Self::new(seed).await;
        let rounds = 1 + walk.random.usize(..2);
        for _ in 0..rounds {
            for _ in 0..20 + walk.random.usize(..60) {
                walk.step().await;
                walk.compare_own_writes();
            }
            walk.settle().await;
            walk.compare().await;
        }
        walk.stop().await;
        if let Some(folder) = &walk.options.warm {
            // It is missing if nothing was ever saved.
            drop(std::fs::remove_dir_all(folder));
        }
        walk.violations
    }

    async fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let cluster = Cluster::builder()
            .seed(seed)
            .start()
            .await
            .expect("a cluster starts");
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        for name in &NAMESPACES[1..] {
            let namespace = json!({"metadata": {"name": name}});
            let namespace = serde_json::from_value(namespace).expect("it is a namespace");
            let created = namespaces.create(&PostParams::default(), &namespace).await;
            created.expect("the name is free");
        }
        let options = Options::any(&mut random, seed);
        let program = Program::new(&cluster, &options, seed);
        let mut walk = Self {
            cluster,
            options,
            program,
            runs: false,
            selection: Selection::all(),
            own: BTreeMap::new(),
            random,
            backup: None,
            restored: false,
            violations: Vec::new(),
            began: Instant::now(),
            log: Vec::new(),
        };
        walk.start().await;
        walk
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.log
            .push(format!("{:?} {}", self.began.elapsed(), text.into()));
    }

    /// Notes a violation, with the operations before the first one.
    pub(crate) fn wrong(&mut self, text: String) {
        if self.violations.is_empty() {
            let from = self.log.len().saturating_sub(LINES);
            self.violations.push(format!(
                "{:?}\n{}",
                self.options,
                self.log[from..].join("\n")
            ));
        }
        self.violations.push(text);
    }

    async fn step(&mut self) {
        match self.random.u8(..34) {
            0..=6 => self.write(false).await,
            7..=13 => self.write(true).await,
            14..=18 => self.wait().await,
            19..=21 => {
                let rule = any_fault(&mut self.random);
                self.note(format!("fault {rule:?}"));
                self.cluster.faults().add(rule);
            }
            22 => {
                self.note("faults end");
                self.cluster.faults().clear();
            }
            23 => match self.random.u8(..3) {
                0 => self.cluster.faults().cut_watches(),
                1 => self.cluster.faults().end_watches(),
                _ => self.cluster.faults().expire_history(),
            },
            24 | 25 => self.select(),
            26 => {
                self.note("relist");
                let _ = self
                    .program
                    .factory
                    .caches()
                    .for_kind(config_maps())
                    .relist();
            }
            27 => self.load().await,
            28 => self.pause().await,
            29 | 30 => self.write_secret().await,
            31 | 32 => self.outage().await,
            _ => self.restart().await,
        }
    }

    pub(crate) async fn wait(&mut self) {
        let wait = match self.random.u8(..4) {
            0 => Duration::from_millis(self.random.u64(..20)),
            1 | 2 => Duration::from_millis(self.random.u64(..5000)),
            _ => Duration::from_secs(self.random.u64(..150)),
        };
        self.note(format!("wait {wait:?}"));
        sleep(wait).await;
    }

    fn pick(&mut self) -> ObjectKey {
        let name = format!("n-{}", self.random.usize(..8));
        ObjectKey::namespaced(NAMESPACES[self.random.usize(..3)], &name)
    }

    /// Creates, changes or deletes a ConfigMap, by the program's client or another one.
    pub(crate) async fn write(&mut self, own: bool) {
        let key = self.pick();
        let client = if own {
            self.program.factory.client()
        } else {
            self.cluster.client()
        };
        let namespace = key.namespace().unwrap_or_default();
        let api: Api<ConfigMap> = Api::namespaced(client, namespace);
        let app = ["web", "db", "x"][self.random.usize(..3)];
        let length = self.random.usize(..1500);
        let value: String = (0..length).map(|_| self.random.alphanumeric()).collect();
        let object = json!({
            "metadata": {"name": key.name(), "labels": {"app": app}}, "data": {"v": value},
        });
        let written = match self.random.u8(..6) {
            0 | 1 => created(&api, object).await,
            2 | 3 => patched(&api, key.name(), object).await,
            _ => return self.delete(&api, &key, own).await,
        };
        let of = written.as_ref().map(|object| version_of(&object.metadata));
        self.note(format!(
            "{} {key}: {of:?}",
            if own { "own write" } else { "write" }
        ));
        if let (Some(object), true) = (written, own && self.runs && self.shows_own_writes()) {
            let uid = object.metadata.uid.clone().unwrap_or_default();
            self.own.insert(key, (uid, version_of(&object.metadata)));
        }
    }

    async fn delete(&mut self, api: &Api<ConfigMap>, key: &ObjectKey, own: bool) {
        let params = DeleteParams::default();
        let deleted = time::timeout(LONGEST, api.delete(key.name(), &params)).await;
        let deleted = matches!(deleted, Ok(Ok(_)));
        self.note(format!(
            "{} {key}: {deleted}",
            if own { "own delete" } else { "delete" }
        ));
        if own && deleted {
            self.own.remove(key);
            let store = self.program.factory.caches().for_kind(config_maps());
            let cached = store.store().get(key).filter(|_| self.shows_own_writes());
            // Nobody creates it again meanwhile.
            if let Some(object) = cached {
                self.wrong(format!(
                    "{key} is cached at {} after its deletion",
                    object.version()
                ));
            }
        }
    }

    /// Returns whether the cache promises to show what the program writes.
    pub(crate) fn shows_own_writes(&self) -> bool {
        !self.options.has_source && !self.restored
    }

    /// Applies or deletes a Secret, by a client that is not the program's.
    pub(crate) async fn write_secret(&mut self) {
        let (key, of) = (self.pick(), self.pick());
        self.note(format!("secret {key} of {}", of.name()));
        let namespace = key.namespace().unwrap_or_default();
        let api: Api<Secret> = Api::namespaced(self.cluster.client(), namespace);
        if self.random.u8(..5) == 0 {
            // One that is missing is as good.
            drop(api.delete(key.name(), &DeleteParams::default()).await);
            return;
        }
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": key.name()},
            "stringData": {"of": of.name(), "number": self.random.u32(..).to_string()},
        });
        let params = PatchParams::apply("walk").force();
        let applied = api.patch(key.name(), &params, &Patch::Apply(object)).await;
        applied.expect("others are not disturbed");
    }

    fn select(&mut self) {
        let all = Selection::all;
        let labels = |text: &str| all().with_labels(text.parse().expect("it is a selector"));
        self.selection = match self.random.u8(..6) {
            0 => all(),
            1 => labels("app=web"),
            2 => labels("app in (web,db)"),
            3 => all().in_namespaces(["default"]),
            4 => labels("app!=x").in_namespaces(["default", "other"]),
            _ => all().with_fields("metadata.name!=n-3".parse().expect("it is a selector")),
        };
        self.note(format!("select {:?}", self.selection));
        let informer = self.program.factory.caches().for_kind(config_maps());
        informer.select(self.selection.clone());
    }

    async fn load(&mut self) {
        let key = self.pick();
        let informer = self.program.factory.caches().for_kind(config_maps());
        let loaded = time::timeout(LONGEST, informer.load(&key)).await;
        match loaded {
            Ok(Ok(loaded)) => self.note(format!("load {key}: {}", loaded.is_some())),
            Ok(Err(error)) => self.note(format!("load {key}: {error}")),
            Err(_) => self.wrong(format!("a load of {key} hangs")),
        }
    }

    async fn pause(&mut self) {
        self.note("pause");
        let controller = self.program.factory.for_kind(config_maps());
        // It is not known while the factory has not been started.
        let paused = controller.pause("h").is_ok();
        sleep(Duration::from_millis(self.random.u64(..20_000))).await;
        if paused {
            controller.resume("h").expect("it was known");
        }
    }

    async fn start(&mut self) {
        // A start may fail because of faults; it stops everything then.
        let started = time::timeout(LONGEST, self.program.factory.start(3)).await;
        self.runs = matches!(started, Ok(Ok(())));
        self.note(format!("start: {}", self.runs));
        if started.is_err() {
            self.stop().await;
        }
    }

    async fn stop(&mut self) {
        self.note("stop");
        if time::timeout(LONGEST, self.program.factory.stop())
            .await
            .is_err()
        {
            self.wrong("a stop takes more than ten minutes".to_owned());
        }
        self.runs = false;
    }

    /// Stops and starts; in between a stop may be dropped, and another factory begin.
    async fn restart(&mut self) {
        if self.random.u8(..3) == 0 {
            let dropped = Duration::from_millis(self.random.u64(..3_000));
            self.note(format!("a stop is dropped after {dropped:?}"));
            drop(time::timeout(dropped, self.program.factory.stop()).await);
        } else {
            self.stop().await;
            if self.random.bool() {
                self.note("another factory");
                let seed = self.random.u64(..);
                self.program = Program::new(&self.cluster, &self.options, seed);
                self.own.clear();
                self.selection = Selection::all();
            }
        }
        self.start().await;
    }

    /// Ends all faults, and waits until nothing happens any more.
    async fn settle(&mut self) {
        self.note("quiet");
        self.cluster.faults().clear();
        // Without it, watches that a fault has hung end by their silence.
        if self.random.bool() {
            self.cluster.faults().cut_watches();
        }
        if !self.runs {
            self.start().await;
        }
        sleep(Duration::from_secs(5400)).await;
        self.restored = false;
    }
}

async fn created(api: &Api<ConfigMap>, object: Value) -> Option<ConfigMap> {
    let object = serde_json::from_value(object).expect("it is a ConfigMap");
    let created = time::timeout(LONGEST, async {
        api.create(&PostParams::default(), &object).await
    });
    created.await.ok()?.ok()
}

async fn patched(api: &Api<ConfigMap>, name: &str, object: Value) -> Option<ConfigMap> {
    let (params, patch) = (PatchParams::default(), Patch::Merge(object));
    let patched = time::timeout(LONGEST, api.patch(name, &params, &patch));
    patched.await.ok()?.ok()
}
