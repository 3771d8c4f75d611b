//! What happens to the whole server in a walk: outages, kinds that are not served, and restored backups.

use std::fmt::Debug;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use lariat_cluster::faults::{Action, Refusal, Rule, RuleId};
use lariat_cluster::{Cluster, Snapshot};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::faults::PROGRAM;
use crate::walk::Walk;

/// Applies content to an object of a kind.
async fn changed<K>(cluster: &Cluster, kind: &str, content: Value)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(cluster.client(), "default");
    let mut object = content;
    object["apiVersion"] = "v1".into();
    object["kind"] = kind.into();
    object["metadata"] = json!({"name": "n-0"});
    let params = PatchParams::apply("backup").force();
    let applied = api.patch("n-0", &params, &Patch::Apply(object)).await;
    applied.expect("others are not disturbed");
}

/// A backup of the cluster.
pub(crate) struct Backup(Snapshot);

impl Walk {
    /// The server is away, or a kind is not served, or a backup is made or restored.
    pub(crate) async fn outage(&mut self) {
        match self.random.u8(..4) {
            0 => self.away().await,
            1 => self.hide().await,
            2 => self.back_up().await,
            _ => self.restore().await,
        }
    }

    async fn away(&mut self) {
        let lasts = Duration::from_millis(self.random.u64(1..40_000));
        let rule = self.isolate();
        self.note(format!("the server is away for {lasts:?}"));
        sleep(lasts).await;
        self.cluster.faults().remove(rule);
    }

    fn isolate(&mut self) -> RuleId {
        let faults = self.cluster.faults();
        if self.random.bool() {
            faults.partition(PROGRAM)
        } else {
            faults.blackhole(PROGRAM)
        }
    }

    /// Answers 404 for a kind, as a server that has not loaded it yet; its objects stay.
    async fn hide(&mut self) {
        let lasts = Duration::from_millis(self.random.u64(1..40_000));
        let resource = ["configmaps", "secrets"][self.random.usize(..2)];
        self.note(format!("{resource} are not served for {lasts:?}"));
        let unknown = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
        let rule = Rule::new(unknown).client(PROGRAM).resource(resource);
        self.cluster.faults().add(rule.for_time(lasts));
        self.cluster.faults().cut_watches();
        self.wait().await;
    }

    /// Keeps a backup, and changes both kinds: a cache cannot notice a restore without a change since the backup.
    async fn back_up(&mut self) {
        self.note("backup");
        self.backup = Some(Backup(self.cluster.snapshot()));
        let (config_map, secret) = (
            json!({"data": self.any()}),
            json!({"stringData": self.any()}),
        );
        changed::<ConfigMap>(&self.cluster, "ConfigMap", config_map).await;
        changed::<Secret>(&self.cluster, "Secret", secret).await;
    }

    fn any(&mut self) -> Value {
        json!({"number": self.random.u32(..).to_string()})
    }

    /// Sets the server back to the backup, while the program cannot reach it.
    async fn restore(&mut self) {
        // A source of the caller may be any server, of whose restores nothing is known.
        let Some(Backup(snapshot)) = self.backup.take().filter(|_| !self.options.has_source) else {
            return;
        };
        let lasts = Duration::from_millis(self.random.u64(1..10_000));
        self.note(format!("the backup is restored in {lasts:?}"));
        let rule = self.isolate();
        let rewound = self.cluster.rewind_to(&snapshot).await;
        rewound.expect("there is no data file");
        sleep(lasts).await;
        self.cluster.faults().remove(rule);
        // What the program wrote since the backup is undone, and what it wrote before has its old version.
        self.own.clear();
        self.restored = true;
    }
}
