//! Kinds that are not served any more, and the deletions that the API server reports.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cache::MissingKind;
use lariat::kube::api::{Api, ApiResource, DeleteParams, Patch, PatchParams, PostParams};
use lariat::kube::core::GroupVersionKind;
use lariat::prelude::*;
use lariat_integration::{Env, eventually, in_namespace};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Longer than API servers need to load their CRDs.
const LONG: Duration = Duration::from_secs(40);

fn versions(served: &[(&str, bool)]) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |(name, served): &(&str, bool)| json!({"name": name, "served": served, "storage": *name == "v1", "schema": schema});
    served.iter().map(version).collect()
}

/// A custom kind, and the keys of the objects that a handler saw.
struct Bench<'a> {
    env: &'a Env,
    crds: Api<CustomResourceDefinition>,
    name: String,
    present: Arc<Mutex<BTreeSet<String>>>,
    deleted: Arc<Mutex<Vec<String>>>,
}

impl<'a> Bench<'a> {
    fn new(env: &'a Env) -> Self {
        Self {
            env,
            crds: Api::all(env.client.clone()),
            name: format!("widgets.{}", env.group()),
            present: Arc::default(),
            deleted: Arc::default(),
        }
    }

    async fn define(&self, served: &[(&str, bool)]) -> Result<()> {
        let definition = serde_json::from_value(json!({
            "metadata": {"name": self.name},
            "spec": {"group": self.env.group(), "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"}, "versions": versions(served)},
        }))?;
        self.crds
            .create(&PostParams::default(), &definition)
            .await?;
        // Writes are accepted a moment after the CRD is established.
        eventually(async || Ok(self.api("v1").list(&Default::default()).await?)).await;
        Ok(())
    }

    fn api(&self, version: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(&self.env.group(), version, "Widget");
        let resource = ApiResource::from_gvk(&gvk);
        Api::namespaced_with(self.env.client.clone(), &self.env.namespace, &resource)
    }

    async fn create(&self, names: &[String]) -> Result<()> {
        for name in names {
            let gvk = GroupVersionKind::gvk(&self.env.group(), "v1", "Widget");
            let object = DynamicObject::new(name, &ApiResource::from_gvk(&gvk));
            // A kind that was just defined refuses creations for a moment.
            eventually(async || {
                Ok(self
                    .api("v1")
                    .create(&PostParams::default(), &object)
                    .await?)
            })
            .await;
        }
        Ok(())
    }

    fn kind(&self, version: &str) -> Gvk {
        Gvk::new(&self.env.group(), version, "Widget")
    }

    async fn sees(&self, count: usize) {
        eventually(async || {
            let present = self.present.lock();
            ensure!(present.len() == count, "{present:?}");
            Ok(())
        })
        .await;
    }

    fn handler(&self) -> impl Handler<DynamicObject> {
        let (present, deleted) = (Arc::clone(&self.present), Arc::clone(&self.deleted));
        move |cx: Context<DynamicObject>| {
            let (present, deleted) = (Arc::clone(&present), Arc::clone(&deleted));
            async move {
                let name = cx.key().name().to_owned();
                if cx.deleted()?.is_some() {
                    deleted.lock().push(name.clone());
                }
                if cx.object()?.is_some() {
                    present.lock().insert(name);
                } else {
                    present.lock().remove(&name);
                }
                Ok(Outcome::done())
            }
        }
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("w-{number}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn unserved_version_calls_no_handler_with_a_deletion() {
    in_namespace("unserved", async |env| {
        let bench = Bench::new(env);
        bench.define(&[("v1", true), ("v1beta1", true)]).await?;
        env.takes_away(&bench.name);
        bench.create(&names(3)).await?;
        let factory = env.factory().build();
        let widgets = factory.for_kind(bench.kind("v1beta1"));
        widgets.register_handler("log", bench.handler())?;
        factory.start(2).await?;
        bench.sees(3).await;
        let serve = async |served| {
            let patch = Patch::Merge(json!({"spec": {"versions": versions(served)}}));
            bench
                .crds
                .patch(&bench.name, &PatchParams::default(), &patch)
                .await
        };
        serve(&[("v1", true), ("v1beta1", false)]).await?;
        let cache = widgets.cache();
        let blind = eventually(async || {
            let blind = cache.status().blind.context("it is still served")?;
            ensure!(blind.lasts > LONG, "{blind}");
            Ok(blind)
        })
        .await;
        assert_eq!(blind.served, [bench.kind("v1")]);
        assert_eq!((cache.len(), bench.deleted.lock().len()), (3, 0));
        assert!(!cache.is_current());

        bench
            .api("v1")
            .delete("w-0", &DeleteParams::default())
            .await?;
        serve(&[("v1", true), ("v1beta1", true)]).await?;
        bench.sees(2).await;
        assert_eq!(*bench.deleted.lock(), ["w-0"]);
        factory.stop().await?;
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_crd_reports_its_objects_and_a_missed_one_is_listed() {
    in_namespace("undefined", async |env| {
        let bench = Bench::new(env);
        bench.define(&[("v1", true)]).await?;
        bench.create(&names(30)).await?;
        let factory = env.factory().missing_kind(MissingKind::Wait).build();
        let widgets = factory.for_kind(bench.kind("v1"));
        widgets.register_handler("log", bench.handler())?;
        factory.start(2).await?;
        bench.sees(30).await;
        let undefine = async || -> Result<()> {
            let deleted = bench
                .crds
                .delete(&bench.name, &DeleteParams::default())
                .await;
            deleted.context("the CRD is deleted")?;
            eventually(async || {
                let found = bench.crds.get_opt(&bench.name).await?;
                found.is_none().then_some(()).context("it is being deleted")
            })
            .await;
            Ok(())
        };
        undefine().await?;
        // The watch reports the deletions before the kind is not served.
        bench.sees(0).await;
        assert_eq!(bench.deleted.lock().len(), 30);

        // While the program does not watch, a deletion is reported by the list of the kind that has come back.
        bench.define(&[("v1", true)]).await?;
        bench.create(&names(3)).await?;
        bench.sees(3).await;
        factory.stop().await?;
        undefine().await?;
        bench.define(&[("v1", true)]).await?;
        env.takes_away(&bench.name);
        bench.create(&["w-1".to_owned()]).await?;
        factory.start(2).await?;
        bench.sees(1).await;
        assert_eq!(bench.deleted.lock().len(), 33);
        factory.stop().await?;
        Ok(())
    })
    .await;
}
