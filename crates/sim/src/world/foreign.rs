//! Foreign clients.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use lariat_cluster::Cluster;
use serde_json::{Value, json};
use tokio::time;

use crate::objects::Objects;
use crate::plan::Change;

/// The label that changes of objects move, and that selections may look at.
pub const LABEL: &str = "app";

/// A client that nothing goes wrong with.
pub(super) struct Foreign {
    pub(super) cluster: Arc<Cluster>,
    pub(super) client: Client,
    pub(super) kind: Objects,
    pub(super) name: String,
}

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl Foreign {
    pub(super) async fn change(&self, change: Change) {
        // What a foreign client does not get done, because another was faster, is not done.
        let done = match change {
            Change::Define(number) => self.define(number, false).await,
            Change::Undefine => self.undefine().await,
            Change::Unserve(seconds) => self.unserve(seconds).await,
            _ => self.change_object(change).await,
        };
        drop(done);
    }

    async fn change_object(&self, change: Change) -> Result<(), Error> {
        let Some(api) = self.api() else { return Ok(()) };
        match change {
            Change::Put => self.put(&api).await,
            Change::Relabel(label) => {
                let label = [Value::Null, "x".into(), "y".into()][usize::from(label % 3)].clone();
                let patch = json!({"metadata": {"labels": {LABEL: label}}});
                self.patch(&api, &patch).await
            }
            Change::Delete => self.delete(&api).await,
            Change::Recreate => {
                drop(self.delete(&api).await);
                self.put(&api).await
            }
            Change::Burst(times) => {
                for _ in 0..times {
                    self.put(&api).await?;
                }
                Ok(())
            }
            Change::DeleteAll => {
                let (delete, all) = (DeleteParams::default(), ListParams::default());
                api.delete_collection(&delete, &all).await.map(drop)
            }
            Change::Define(_) | Change::Undefine | Change::Unserve(_) => Ok(()),
        }
    }

    /// The resource as it is served now; none if it is not.
    fn api(&self) -> Option<Api<DynamicObject>> {
        let resource = self.kind.resource();
        if !self.kind.is_custom() {
            return Some(Api::namespaced_with(
                self.client.clone(),
                "default",
                &resource,
            ));
        }
        // The CRD as it is now, since a plan may have defined the kind with another version or scope.
        let crd = self.crd()?;
        let versions = crd["spec"]["versions"].as_array()?;
        let version = versions.iter().find(|each| each["served"] == true)?;
        let version = version["name"].as_str()?;
        let gvk = GroupVersionKind::gvk(&resource.group, version, &resource.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &resource.plural);
        let client = self.client.clone();
        Some(if crd["spec"]["scope"] == "Cluster" {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, "default", &resource)
        })
    }

    fn crd_name(&self) -> String {
        let resource = self.kind.resource();
        format!("{}.{}", resource.plural, resource.group)
    }

    fn crd(&self) -> Option<Value> {
        let crds = self.cluster.objects(CRDS);
        let name = self.crd_name();
        let mut of_kind = crds.iter().filter(|each| each.key().name() == name);
        serde_json::from_slice(&of_kind.next()?.json()).ok()
    }

    async fn put(&self, api: &Api<DynamicObject>) -> Result<(), Error> {
        let mut object = self.kind.object(&self.name);
        let patched = self.patch(api, &object).await;
        let Err(Error::Api(status)) = &patched else {
            return patched;
        };
        // Only a missing object is created. Another error, such as one of a kind that vanished, ends the write.
        if status.code != 404 {
            return patched;
        }
        object["apiVersion"] = self.kind.resource().api_version.into();
        object["kind"] = self.kind.resource().kind.into();
        let object: DynamicObject = serde_json::from_value(object).map_err(Error::SerdeError)?;
        api.create(&PostParams::default(), &object).await.map(drop)
    }

    async fn patch(&self, api: &Api<DynamicObject>, patch: &Value) -> Result<(), Error> {
        let params = PatchParams::default();
        api.patch(&self.name, &params, &Patch::Merge(patch))
            .await
            .map(drop)
    }

    async fn delete(&self, api: &Api<DynamicObject>) -> Result<(), Error> {
        api.delete(&self.name, &DeleteParams::default())
            .await
            .map(drop)
    }

    async fn undefine(&self) -> Result<(), Error> {
        let api = self.crds();
        api.delete(&self.crd_name(), &DeleteParams::default())
            .await
            .map(drop)
    }

    /// Serves the kind under another version alone for a while, as in the middle of a migration.
    async fn unserve(&self, seconds: u8) -> Result<(), Error> {
        let Some(crd) = self.crd() else { return Ok(()) };
        let mut stored = crd["spec"]["versions"][0].clone();
        let mut other = stored.clone();
        stored["served"] = false.into();
        other["name"] = "v1alpha1".into();
        other["storage"] = false.into();
        self.serve(&[stored.clone(), other]).await?;
        time::sleep(Duration::from_secs(seconds.into())).await;
        stored["served"] = true.into();
        self.serve(&[stored]).await
    }

    async fn serve(&self, versions: &[Value]) -> Result<(), Error> {
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        let (crds, params) = (self.crds(), PatchParams::default());
        crds.patch(&self.crd_name(), &params, &patch)
            .await
            .map(drop)
    }

    fn crds(&self) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        Api::all_with(self.client.clone(), &ApiResource::from_gvk(&gvk))
    }

    /// Defines the kind; one that is defined differently is removed before.
    ///
    /// A CRD another client makes meanwhile is left as it is, unless this one `insists`.
    pub(super) async fn define(&self, number: u8, insists: bool) -> Result<(), Error> {
        let wanted = self.kind.crd(number);
        let mut removes = true;
        // The name is free once the objects of the old CRD are gone.
        while let Some(is) = self.crd() {
            let stored = &is["spec"]["versions"][0];
            // Nobody else serves it again after a restore. Its objects, and so a CRD in deletion, would stay for ever.
            if insists && stored["served"] == false {
                let mut served = stored.clone();
                served["served"] = true.into();
                self.serve(&[served]).await?;
                continue;
            }
            if is["metadata"]["deletionTimestamp"].is_null() {
                let same = is["spec"]["scope"] == wanted["spec"]["scope"]
                    && is["spec"]["versions"][0]["name"] == wanted["spec"]["versions"][0]["name"];
                if same || !removes {
                    return Ok(());
                }
                drop(self.undefine().await);
                // One removal is this client's own; a second would take away what another client defined.
                removes = insists;
            }
            time::sleep(Duration::from_millis(100)).await;
        }
        let crd = serde_json::from_value(wanted).map_err(Error::SerdeError)?;
        self.crds()
            .create(&PostParams::default(), &crd)
            .await
            .map(drop)
    }
}
