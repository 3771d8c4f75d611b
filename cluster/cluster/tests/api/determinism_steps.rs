//! What a cluster and its clients do at random, and what they are answered.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use http::{Method, Request};
use http_body_util::Full;
use lariat_cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat_cluster::{Cluster, Commit, Snapshot, Time, Workloads};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::bench::{Bench, CONFIG_MAPS};
use crate::determinism_lines::{Lines, TIMEOUT, follow, send};
use crate::fuzz::served;
use crate::fuzz_objects::{pick, sound};
use crate::fuzz_requests::{Ask, Served, ask};
use crate::kinds::definition;

/// The most watches there are at a time.
const WATCHES: usize = 12;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

struct Run {
    bench: Bench,
    rng: Rng,
    served: Vec<Served>,
    lines: Lines,
    watches: JoinSet<()>,
    opened: usize,
    asked: usize,
    backup: Snapshot,
}

/// Does so many steps, and returns all lines.
pub(crate) async fn transcript(seed: u64, steps: usize) -> Vec<String> {
    let mut run = Run::start(seed).await;
    let commits = run.bench.cluster.commits();
    for step in 0..steps {
        run.lines.lock().push(format!("step {step}"));
        run.step().await;
    }
    run.bench.cluster.faults().clear();
    sleep(TIMEOUT).await;
    for request in run.bench.cluster.journal().requests() {
        run.lines.lock().push(format!("journal {request:?}"));
    }
    run.lines.lock().extend(commits.take().iter().map(shown));
    run.bench.cluster.shutdown().await;
    while run.watches.join_next().await.is_some() {}
    std::mem::take(&mut *run.lines.lock())
}

fn shown(commit: &Commit) -> String {
    match commit {
        Commit::Stored(object) | Commit::Removed { last: object } => {
            let json = object.json();
            format!("commit {object:?} {}", json.escape_ascii())
        }
        other => format!("commit {other:?}"),
    }
}

impl Run {
    async fn start(seed: u64) -> Self {
        let workloads = Workloads::default()
            .nodes(2)
            .run_time(Duration::from_secs(2));
        let time = Time::real().bookmark_period(Duration::from_secs(3));
        let cluster = Cluster::builder()
            .seed(seed)
            .history(200)
            .namespace_defaults(true)
            .time(time.event_ttl(Duration::from_secs(30)))
            .simulate_workloads(workloads);
        let cluster = cluster.start().await;
        let bench = Bench {
            cluster: cluster.expect("a cluster without a socket starts"),
        };
        bench
            .define(&definition("widgets", "Widget", "Namespaced"))
            .await;
        Self {
            rng: Rng::with_seed(seed),
            served: served(&bench).await,
            lines: Arc::default(),
            watches: JoinSet::new(),
            opened: 0,
            asked: 0,
            backup: bench.cluster.snapshot(),
            bench,
        }
    }

    async fn step(&mut self) {
        match self.rng.u8(..100) {
            0..35 => self.ask_some().await,
            35..49 => self.write().await,
            49..60 => self.watch(),
            60..66 => self.own().await,
            66..71 => self.namespace().await,
            71..76 => self.define().await,
            76..83 => self.fault(),
            83..86 => self.bench.cluster.faults().clear(),
            86..91 => self.control().await,
            _ => sleep(Duration::from_millis(self.rng.u64(..4000))).await,
        }
    }

    /// Sends any requests, several at a time.
    async fn ask_some(&mut self) {
        let count = self.rng.usize(1..4);
        let asks: Vec<Ask> = (0..count)
            .map(|_| ask(&mut self.rng, &self.served, &[]))
            .collect();
        self.send(asks).await;
    }

    /// Writes an object that is sound: by create, apply, merge patch or deletion.
    async fn write(&mut self) {
        let plurals = ["configmaps", "pods", "services", "events"];
        let (plural, name) = (pick(&mut self.rng, &plurals), pick(&mut self.rng, &NAMES));
        let mut object = sound(&mut self.rng, plural, name);
        let path = format!("/api/v1/namespaces/default/{plural}");
        let one = format!("{path}/{name}");
        let ask = match self.rng.u8(..6) {
            0 | 1 => of(Method::POST, path, "application/json", &object),
            2 => {
                let kinds = ["ConfigMap", "Pod", "Service", "Event"];
                let at = plurals.iter().position(|each| *each == plural);
                object["kind"] = kinds[at.unwrap_or_default()].into();
                object["apiVersion"] = "v1".into();
                let query = format!(
                    "{one}?fieldManager={}&force=true",
                    pick(&mut self.rng, &NAMES)
                );
                of(
                    Method::PATCH,
                    query,
                    "application/apply-patch+yaml",
                    &object,
                )
            }
            3 => {
                let patch = json!({"metadata": {"labels": {"app": pick(&mut self.rng, &NAMES)}}});
                of(Method::PATCH, one, "application/merge-patch+json", &patch)
            }
            4 => of(Method::DELETE, one, "application/json", &json!({})),
            _ => of(
                Method::DELETE,
                format!("{path}?labelSelector=app"),
                "application/json",
                &json!({}),
            ),
        };
        self.send(vec![ask]).await;
    }

    /// Opens a watch that goes on beside all else.
    fn watch(&mut self) {
        while self.watches.try_join_next().is_some() {}
        if self.watches.len() >= WATCHES {
            return self.watches.abort_all();
        }
        let paths = [
            "/api/v1/pods",
            CONFIG_MAPS,
            "/api/v1/events",
            "/api/v1/pods",
            "/api/v1/configmaps",
            "/apis/demo.dev/v1/widgets",
            "/api/v1/namespaces",
        ];
        let queries = [
            "",
            "&allowWatchBookmarks=true",
            "&resourceVersion=0",
            "&labelSelector=app",
            "&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
        ];
        let accepts = [
            "application/json",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        ];
        let mut path = format!(
            "{}?watch=1{}",
            pick(&mut self.rng, &paths),
            pick(&mut self.rng, &queries)
        );
        if self.rng.u8(..3) == 0 && !path.contains("resourceVersion") {
            let from = self
                .bench
                .cluster
                .revision()
                .saturating_sub(self.rng.u64(..300));
            path.push_str(&format!("&resourceVersion={from}"));
        }
        self.opened += 1;
        let request = Request::get(path).header("accept", pick(&mut self.rng, &accepts));
        let request = request.body(Full::default()).expect("it is well formed");
        let (name, lines) = (format!("watch {}", self.opened), Arc::clone(&self.lines));
        self.watches
            .spawn(follow(self.bench.cluster.service(), request, name, lines));
    }

    /// Creates an owner and dependents of it, and deletes the owner.
    async fn own(&mut self) {
        let owner = json!({"metadata": {"generateName": "owner-"}});
        let owner = self
            .bench
            .try_ask(Method::POST, CONFIG_MAPS, &JSON, owner.to_string());
        let Ok(Ok(owner)) = timeout(TIMEOUT, owner).await else {
            return self.lines.lock().push("no owner".into());
        };
        let owner: Value = serde_json::from_slice(&owner.bytes).unwrap_or_default();
        let metadata = &owner["metadata"];
        // The other kind is defined later, if ever; until then the owner is unknown.
        let kinds = ["v1 ConfigMap", "demo.dev/v1 Gadget"];
        let kind = pick(&mut self.rng, &kinds).split_once(' ');
        let (api_version, kind) = kind.expect("it has two words");
        let reference = json!({"apiVersion": api_version, "kind": kind, "name": metadata["name"],
            "uid": metadata["uid"], "blockOwnerDeletion": true});
        let dependent =
            || json!({"metadata": {"generateName": "dependent-", "ownerReferences": [reference]}});
        let create = || {
            of(
                Method::POST,
                CONFIG_MAPS.to_owned(),
                JSON[0].1,
                &dependent(),
            )
        };
        self.send((0..3).map(|_| create()).collect()).await;
        let path = format!(
            "{CONFIG_MAPS}/{}",
            metadata["name"].as_str().unwrap_or("none")
        );
        let policy = pick(&mut self.rng, &["Foreground", "Background", "Orphan"]);
        let options = json!({"propagationPolicy": policy});
        self.send(vec![of(Method::DELETE, path, JSON[0].1, &options)])
            .await;
    }

    /// Creates or deletes a namespace, with something in it.
    async fn namespace(&mut self) {
        let name = pick(&mut self.rng, &NAMES);
        let path = format!("/api/v1/namespaces/{name}");
        if self.rng.bool() {
            return self
                .send(vec![of(Method::DELETE, path, JSON[0].1, &json!({}))])
                .await;
        }
        let object = json!({"metadata": {"name": name}});
        self.send(vec![of(
            Method::POST,
            "/api/v1/namespaces".into(),
            JSON[0].1,
            &object,
        )])
        .await;
        let workloads = ["deployments", "statefulsets", "daemonsets"];
        let plural = pick(&mut self.rng, &workloads);
        let workload = sound(&mut self.rng, plural, name);
        let workloads = format!("/apis/apps/v1/namespaces/{name}/{plural}");
        let map = sound(&mut self.rng, "configmaps", "in");
        self.send(vec![
            of(Method::POST, workloads, JSON[0].1, &workload),
            of(Method::POST, format!("{path}/configmaps"), JSON[0].1, &map),
        ])
        .await;
    }

    /// Creates or deletes a CRD, and reads what discovery and OpenAPI say.
    async fn define(&mut self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let plural = pick(&mut self.rng, &["widgets", "gadgets", "nosuches"]);
        let ask = if self.rng.bool() {
            let made = definition(plural, "Gadget", "Namespaced");
            of(Method::POST, path.into(), JSON[0].1, &made)
        } else {
            of(
                Method::DELETE,
                format!("{path}/{plural}.demo.dev"),
                JSON[0].1,
                &json!({}),
            )
        };
        self.send(vec![ask]).await;
        let paths = [
            "/apis",
            "/api",
            "/openapi/v3",
            "/openapi/v3/apis/apps/v1",
            "/openapi/v3/api/v1",
            "/openapi/v3/apis/demo.dev/v1",
            "/apis/demo.dev/v1",
        ];
        let path = pick(&mut self.rng, &paths);
        self.send(vec![of(Method::GET, path.into(), "", &json!(null))])
            .await;
    }

    fn fault(&mut self) {
        let action = action(&mut self.rng);
        let rule = Rule::new(action).times(self.rng.u64(1..4)).probability(0.6);
        self.bench.cluster.faults().add(rule);
    }

    /// Does something to the cluster as a whole.
    async fn control(&mut self) {
        let cluster = &self.bench.cluster;
        match self.rng.u8(..10) {
            0 => cluster.cut_watches(),
            1 => cluster.end_watches(),
            2 => cluster.compact(),
            3 => self.backup = cluster.snapshot(),
            4 => cluster.restore(&self.backup).await.expect("it has no file"),
            5 => cluster
                .rewind_to(&self.backup)
                .await
                .expect("it has no file"),
            6 => cluster.control().pause_garbage_collection(),
            7 => cluster.control().resume_garbage_collection(),
            8 => cluster
                .workloads()
                .fail_pod("default", pick(&mut self.rng, &NAMES)),
            _ => drop(
                cluster
                    .faults()
                    .partition(pick(&mut self.rng, &["", "other/"])),
            ),
        }
    }

    /// Sends requests at once, and waits for their answers.
    async fn send(&mut self, asks: Vec<Ask>) {
        let asks = asks.iter().enumerate().map(|(index, ask)| {
            let name = format!("request {}", self.asked + index);
            send(self.bench.cluster.service(), ask, name, &self.lines)
        });
        let sent = join_all(asks).await;
        self.asked += sent.len();
    }
}

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

fn of(method: Method, path: String, media: &'static str, body: &Value) -> Ask {
    Ask {
        method,
        path,
        headers: vec![("content-type", media.to_owned())],
        body: if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        },
    }
}

fn action(rng: &mut Rng) -> Action {
    let time = Duration::from_millis(rng.u64(..5000));
    let after = if rng.bool() {
        After::Events(rng.usize(..4))
    } else {
        After::Time(time)
    };
    let bytes = rng.usize(..3000);
    match rng.u8(..27) {
        0 => Action::Delay(time),
        1 => Action::DelayReply(time),
        2 => Action::Refuse(Refusal::too_many_requests().retry_after(time)),
        3 => Action::Refuse(Refusal::new(StatusCode::BAD_GATEWAY)),
        4 => Action::NoAnswer,
        5 => Action::NoReply,
        6 => Action::Disconnect,
        7 => Action::LoseReply,
        8 => Action::Expire,
        9 => Action::Gone,
        10 => Action::StaleRead,
        11 => Action::Conflict,
        12 => Action::SkipVersions(rng.u64(..50)),
        13 => Action::EndWatch(after),
        14 => Action::CutWatch(after),
        15 => Action::HangWatch(after),
        16 => Action::ReplayEvents(rng.usize(..5)),
        17 => Action::LegacyDiscovery,
        18 => Action::Bandwidth(rng.u64(500..50_000)),
        19 => Action::Freeze,
        20 => Action::SkipStates,
        21 => Action::Recreate(String::new()),
        22 => Action::ExceedQuota("small".into()),
        23 => Action::LimitRequests(rng.usize(1..3)),
        24 => Action::CutBody(bytes),
        25 => Action::Truncate(bytes),
        _ => Action::DuplicateEvents,
    }
}
