//! Foreign clients that change the children of shops, and shops.

use std::time::Duration;

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::Process;
use serde_json::json;
use tokio::time;

use super::setup::Setup;
use crate::operator_action::OperatorAction;
use crate::plan::Command;
use crate::shop;
use crate::trial::setup::Failed;

/// The time limit of one action: its requests get lost like others'.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn run(process: Process, setup: Setup) -> Result<(), Failed> {
    let writer = ForeignWriter {
        client: process.client(),
        process,
    };
    // Objects in the way stay in half of the seeds, so that shops also come to rest while they are blocked.
    let mut is_clear = !setup.clears;
    loop {
        let process = &writer.process;
        let command = tokio::select! {
            biased;
            () = process.terminated() => return Ok(()),
            command = Command::next(process) => command,
            () = time::sleep(Duration::from_secs(5)) => {
                if process.faults_ended() && !is_clear {
                    let cleared = time::timeout(TIMEOUT, writer.clear()).await;
                    is_clear = matches!(cleared, Ok(Ok(0)));
                }
                continue;
            }
        };
        let Some(command) = command else {
            return Ok(());
        };
        // What is not there any more, or not yet, is left alone.
        drop(time::timeout(TIMEOUT, writer.act(command.number)).await);
    }
}

struct ForeignWriter {
    process: Process,
    client: Client,
}

impl ForeignWriter {
    async fn act(&self, number: u32) -> Result<(), Error> {
        let key = key(number);
        let shops = self.api(&shop::gvk());
        // The lowest byte chooses the shop, the next one the action, and the bits from 16 on its details.
        match (number >> 8) % 10 {
            0 => {
                return shops
                    .delete(key.name(), &DeleteParams::default())
                    .await
                    .map(drop);
            }
            1 if (number >> 16).is_multiple_of(3) => return self.let_go(&shops, &key).await,
            1 | 2 => return self.change(&shops, &key, number).await,
            _ => {}
        }
        let shop = shops.get(key.name()).await?;
        let children = shop::wanted_by_key(&key, &json!({"spec": shop.data["spec"]}));
        let at = (number >> 16) as usize % children.len().max(1);
        let Some(((gvk, child), wanted)) = children.into_iter().nth(at) else {
            return Ok(());
        };
        let (api, name) = (self.api(&gvk), child.name());
        let fields = json!({
            "apiVersion": wanted["apiVersion"], "kind": wanted["kind"],
            "metadata": {"name": name}, "data": {"number": "Nzc="},
        });
        match (number >> 8) % 10 {
            3 | 4 => api.delete(name, &DeleteParams::default()).await.map(drop),
            5 => {
                let patch = Patch::Merge(json!({"data": {"number": "OTk=", "more": "OTk="}}));
                api.patch(name, &PatchParams::default(), &patch)
                    .await
                    .map(drop)
            }
            6 => {
                let params = PatchParams::apply("writer").force();
                api.patch(name, &params, &Patch::Apply(fields))
                    .await
                    .map(drop)
            }
            _ => {
                // Deleted and created as a foreign object, so that the operator finds its name taken.
                drop(api.delete(name, &DeleteParams::default()).await);
                let foreign = serde_json::from_value(fields).map_err(Error::SerdeError)?;
                api.create(&PostParams::default(), &foreign).await.map(drop)
            }
        }
    }

    /// Removes the finalizer of a shop that is being deleted, as impatient users do.
    async fn let_go(&self, shops: &Api<DynamicObject>, key: &ObjectKey) -> Result<(), Error> {
        let shop = shops.get(key.name()).await?;
        if shop.metadata.deletion_timestamp.is_none() {
            return Ok(());
        }
        OperatorAction::RemovesFinalizer { key: key.clone() }.report(&self.process);
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let params = PatchParams::default();
        shops.patch(key.name(), &params, &patch).await.map(drop)
    }

    async fn change(
        &self,
        shops: &Api<DynamicObject>,
        key: &ObjectKey,
        number: u32,
    ) -> Result<(), Error> {
        let patch = Patch::Merge(shop::spec((number >> 16).into()));
        let params = PatchParams::default();
        shops.patch(key.name(), &params, &patch).await.map(drop)
    }

    /// Deletes the objects that no shop owns, and returns their number.
    async fn clear(&self) -> Result<usize, Error> {
        let mut deleted = 0;
        for gvk in [shop::config_maps(), shop::secrets()] {
            let api = self.api(&gvk);
            for object in api.list(&ListParams::default()).await? {
                let is_foreign = object.metadata.owner_references.is_none();
                if let Some(name) = object.metadata.name.filter(|_| is_foreign) {
                    drop(api.delete(&name, &DeleteParams::default()).await);
                    deleted += 1;
                }
            }
        }
        Ok(deleted)
    }

    fn api(&self, gvk: &Gvk) -> Api<DynamicObject> {
        let plural = format!("{}s", gvk.kind().to_lowercase());
        let gvk = GroupVersionKind::gvk(gvk.group(), gvk.version(), gvk.kind());
        let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
        Api::namespaced_with(self.client.clone(), "default", &resource)
    }
}

pub(crate) fn key(number: u32) -> ObjectKey {
    ObjectKey::namespaced("default", &format!("o{}", number % 12))
}
