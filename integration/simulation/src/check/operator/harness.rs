//! A cluster and an oracle for the tests of one checker.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use lariat_cache::CachedObject;
use lariat_cluster::{Cluster, Commits, Snapshot};
use lariat_core::{Causes, Gvk, ObjectKey, RawObject};
use lariat_sim::Objects;
use lariat_sim::internals::{Event, HandlerId, IncarnationId, Moment, ObjectsExt, Observed, Rest};
use serde_json::{Value, json};

use crate::check::{Check, Findings};
use crate::operator_action::OperatorAction;
use crate::oracle::Oracle;
use crate::shop;

const PROCESS: &str = "operator-0";

fn incarnation() -> IncarnationId {
    IncarnationId {
        process: Arc::from(PROCESS),
        number: 0,
    }
}

pub(super) struct OperatorHarness {
    cluster: Cluster,
    client: Client,
    commits: Commits,
    oracle: Oracle,
    check: Box<dyn Check>,
    now: Moment,
    found: Findings,
}

impl OperatorHarness {
    /// Begins with a cluster that serves shops.
    pub(super) async fn new(check: impl Check + 'static) -> Self {
        let cluster = Cluster::builder().start().await.unwrap();
        // The tests need no schema of shops: all fields are kept.
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let crd = Objects::new(shop::gvk(), "shops")
            .custom(schema)
            .usual_crd();
        let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let crds = Api::<DynamicObject>::all_with(cluster.client(), &ApiResource::from_gvk(&gvk));
        let crd = serde_json::from_value(crd).unwrap();
        crds.create(&PostParams::default(), &crd).await.unwrap();
        // Served a moment after it is defined.
        while kind(&cluster.client(), &shop::gvk(), "default")
            .list(&ListParams::default())
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
        Self {
            client: cluster.client(),
            commits: cluster.commits(),
            cluster,
            oracle: Oracle::default(),
            check: Box::new(check),
            now: Moment {
                number: 0,
                at: Duration::ZERO,
                actor: Arc::from(PROCESS),
            },
            found: Vec::new(),
        }
    }

    pub(super) fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("default", name)
    }

    /// Returns the findings so far.
    pub(super) fn all(&self) -> &[String] {
        &self.found
    }

    /// Returns whether something was found that says this.
    pub(super) fn found(&self, text: &str) -> bool {
        self.found.iter().any(|found| found.contains(text))
    }

    pub(super) fn wait(&mut self, time: Duration) {
        self.now.at += time;
    }

    pub(super) fn note(&mut self, event: &Event) {
        self.now.number += 1;
        self.oracle.saw(&self.now, event);
        self.found
            .extend(self.check.saw(&self.oracle, &self.now, event));
    }

    pub(super) fn did(&mut self, action: OperatorAction) {
        let incarnation = incarnation();
        self.note(&Event::Did {
            incarnation,
            action: action.carried(),
        });
    }

    pub(super) fn operates(&mut self) {
        let period = Duration::from_secs(60);
        self.did(OperatorAction::Operates {
            period,
            fetches: false,
        });
    }

    /// Does something as another process.
    fn as_process(&mut self, process: &str, act: impl FnOnce(&mut Self)) {
        let own = std::mem::replace(&mut self.now.actor, Arc::from(process));
        act(self);
        self.now.actor = own;
    }

    pub(super) fn operates_as(&mut self, process: &str) {
        let incarnation = IncarnationId {
            process: Arc::from(process),
            number: 0,
        };
        let action = OperatorAction::Operates {
            period: Duration::from_secs(60),
            fetches: false,
        };
        self.as_process(process, |harness| {
            harness.note(&Event::Did {
                incarnation,
                action: action.carried(),
            });
        });
    }

    pub(super) fn sent_by(&mut self, process: &str, request: u64, what: &str) {
        self.as_process(process, |harness| harness.sent(request, what));
    }

    pub(super) fn sent(&mut self, request: u64, what: &str) {
        let what = what.to_owned();
        self.note(&Event::Sent { request, what });
    }

    pub(super) fn answered(&mut self, request: u64, result: &str) {
        let result = result.to_owned();
        self.note(&Event::Answered { request, result });
    }

    /// Calls the handler of shops with the present state of one.
    pub(super) fn called(&mut self, name: &str) {
        let key = Self::key(name);
        let now = self.oracle.now(&shop::gvk(), &key).unwrap();
        let shown = Observed {
            uid: now.uid().to_owned(),
            version: now.revision(),
            object: cached(now.json().as_ref()),
        };
        self.note(&Event::Began {
            handler: HandlerId {
                incarnation: incarnation(),
                kind: shop::gvk(),
                name: Arc::from("shops"),
            },
            key,
            run: 1,
            attempt: 1,
            object: Some(shown),
            causes: Arc::new(Causes::default()),
            loads: None,
        });
    }

    pub(super) fn rest(&mut self) {
        let rest = Rest {
            now: self.now.at,
            served: &[],
            incarnation: &incarnation(),
            factories: &[],
            remembered: &[],
            controllers: &[],
            caches: &[],
        };
        self.found.extend(self.check.at_rest(&self.oracle, &rest));
    }

    pub(super) fn backup(&self) -> Snapshot {
        self.cluster.snapshot()
    }

    pub(super) async fn restore(&mut self, backup: &Snapshot) {
        self.cluster.rewind_to(backup).await.unwrap();
        self.take();
    }

    pub(super) fn uid(&self, kind: &Gvk, name: &str) -> String {
        let now = self.oracle.now(kind, &Self::key(name));
        now.unwrap().uid().to_owned()
    }

    /// Creates a shop with the finalizer, and returns its uid.
    pub(super) async fn create_shop(&mut self, name: &str, spec: u64) -> String {
        let mut shop = shop::spec(spec);
        shop["metadata"]["finalizers"] = json!([shop::FINALIZER]);
        self.create(&shop::gvk(), name, &shop).await;
        self.uid(&shop::gvk(), name)
    }

    pub(super) async fn create_ledger(&mut self, uid: &str) {
        let ledger = shop::ledger(uid);
        let api = self.api(&shop::config_maps(), ledger.namespace().unwrap());
        let object = json!({"metadata": {"name": ledger.name()}});
        create(&api, &shop::config_maps(), object).await;
        self.take();
    }

    pub(super) async fn create(&mut self, kind: &Gvk, name: &str, object: &Value) {
        let mut object = object.clone();
        object["metadata"]["name"] = name.into();
        create(&self.api(kind, "default"), kind, object).await;
        self.take();
    }

    pub(super) async fn patch(&mut self, kind: &Gvk, name: &str, patch: &Value) {
        let params = PatchParams::default();
        let api = self.api(kind, "default");
        api.patch(name, &params, &Patch::Merge(patch))
            .await
            .unwrap();
        self.take();
    }

    pub(super) async fn patch_status(&mut self, name: &str, patch: &Value) {
        let params = PatchParams::default();
        let api = self.api(&shop::gvk(), "default");
        api.patch_status(name, &params, &Patch::Merge(patch))
            .await
            .unwrap();
        self.take();
    }

    /// Applies fields as the operator.
    pub(super) async fn apply(&mut self, kind: &Gvk, name: &str, fields: &Value) {
        let mut fields = fields.clone();
        fields["apiVersion"] = kind.api_version().into();
        fields["kind"] = kind.kind().into();
        fields["metadata"]["name"] = name.into();
        let params = PatchParams::apply(shop::OPERATOR).force();
        let api = self.api(kind, "default");
        api.patch(name, &params, &Patch::Apply(fields))
            .await
            .unwrap();
        self.take();
    }

    pub(super) async fn delete(&mut self, kind: &Gvk, name: &str) {
        let api = self.api(kind, "default");
        api.delete(name, &DeleteParams::default()).await.unwrap();
        self.take();
    }

    fn take(&mut self) {
        for commit in self.commits.take() {
            self.note(&Event::Committed(commit));
        }
    }

    fn api(&self, of: &Gvk, namespace: &str) -> Api<DynamicObject> {
        kind(&self.client, of, namespace)
    }
}

fn kind(client: &Client, kind: &Gvk, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), kind.kind());
    let resource = ApiResource::from_gvk(&gvk);
    Api::namespaced_with(client.clone(), namespace, &resource)
}

async fn create(api: &Api<DynamicObject>, kind: &Gvk, mut object: Value) {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind().into();
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn cached(json: &[u8]) -> Arc<CachedObject> {
    let raw = RawObject::parse(json, &shop::gvk()).unwrap();
    Arc::new(CachedObject::new(raw))
}
