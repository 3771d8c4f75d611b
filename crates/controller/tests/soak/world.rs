//! Creates, changes and deletes objects and kinds at random.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use lariat_cluster::Cluster;
use lariat_core::Gvk;
use serde_json::json;
use std::time::Duration;
use tokio::time;

/// The kinds that are always served, and those that are added and removed.
pub(crate) const BUILT_IN: [&str; 2] = ["ConfigMap", "Secret"];
pub(crate) const DEFINED: [&str; 2] = ["Widget", "Gadget"];

/// The value of each object by kind and name; none for deleted ones.
pub(crate) type Values = BTreeMap<(String, String), Option<String>>;

pub(crate) fn gvk(kind: &str) -> Gvk {
    if BUILT_IN.contains(&kind) {
        Gvk::new("", "v1", kind)
    } else {
        Gvk::new("demo.dev", "v1", kind)
    }
}

/// The expected state of the API server.
pub(crate) struct World {
    client: Client,
    defined: Vec<&'static str>,
    pub(crate) truth: Values,
    pub(crate) changes: u64,
}

impl World {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            client: cluster.client(),
            defined: Vec::new(),
            truth: Values::new(),
            changes: 0,
        }
    }

    /// Makes one random change.
    pub(crate) async fn step(&mut self, random: &mut fastrand::Rng) {
        let kind = match random.u16(..400) {
            0 => return self.define_all().await,
            1 => return self.undefine(random).await,
            number if number < 300 => BUILT_IN[random.usize(..BUILT_IN.len())],
            _ => match self.defined.as_slice() {
                [] => return,
                some => some[random.usize(..some.len())],
            },
        };
        let name = format!("o{}", random.u8(..6));
        let known = (kind.to_owned(), name.clone());
        let exists = self.truth.get(&known).is_some_and(Option::is_some);
        let value = format!("v{}", random.u32(..));
        let deletes = exists && random.u8(..5) == 0;
        let api = self.api(kind);
        if deletes {
            again(async || api.delete(&name, &DeleteParams::default()).await).await;
        } else if exists {
            let patch = Patch::Merge(json!({"metadata": {"labels": {"value": value}}}));
            again(async || api.patch(&name, &PatchParams::default(), &patch).await).await;
        } else {
            let mut object = DynamicObject::new(&name, &resource(kind));
            object.metadata.labels = Some([("value".to_owned(), value.clone())].into());
            again(async || api.create(&PostParams::default(), &object).await).await;
        }
        self.truth.insert(known, (!deletes).then_some(value));
        self.changes += 1;
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), "default", &resource(kind))
    }

    /// Creates the CRDs of kinds that are not served.
    pub(crate) async fn define_all(&mut self) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for kind in DEFINED {
            if !self.defined.contains(&kind) {
                again(async || api.create(&PostParams::default(), &crd(kind)).await).await;
                self.defined.push(kind);
            }
        }
        // A CRD is served once it is established.
        time::sleep(Duration::from_secs(2)).await;
    }

    /// Removes a kind, and with it its objects.
    async fn undefine(&mut self, random: &mut fastrand::Rng) {
        if self.defined.is_empty() {
            return;
        }
        let kind = self.defined.swap_remove(random.usize(..self.defined.len()));
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = format!("{}s.demo.dev", kind.to_lowercase());
        again(async || api.delete(&name, &DeleteParams::default()).await).await;
        let mut objects = self.truth.iter_mut();
        objects.all(|((of, _), value)| {
            if of == kind {
                *value = None;
            }
            true
        });
        time::sleep(Duration::from_secs(2)).await;
    }
}

/// Repeats a request until the API server accepts it.
async fn again<T>(write: impl AsyncFn() -> Result<T, Error>) {
    for _ in 0..100 {
        if write().await.is_ok() {
            return;
        }
        time::sleep(Duration::from_millis(100)).await;
    }
    panic!("a write was refused a hundred times");
}

fn resource(kind: &str) -> ApiResource {
    let gvk = gvk(kind);
    ApiResource::from_gvk(&GroupVersionKind::gvk(gvk.group(), gvk.version(), kind))
}

fn crd(kind: &str) -> CustomResourceDefinition {
    let singular = kind.to_lowercase();
    let schema = json!({"openAPIV3Schema":
        {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    serde_json::from_value(json!({
        "metadata": {"name": format!("{singular}s.demo.dev")},
        "spec": {
            "group": "demo.dev", "scope": "Namespaced",
            "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    }))
    .expect("it is one")
}
