//! Writes of the program itself, by handlers and outside of them, each with a look at what the cache shows then.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use lariat_cache::{Phase, Store};
use lariat_controller::{HandlerError, SharedControllerFactory};
use lariat_core::{Gvk, ObjectKey};
use lariat_sim::Process;
use lariat_sim::internals::LABEL;
use serde_json::json;
use tokio::time;

use super::dice::{Dice, gvk};
use super::kinds::{PLURALS, kinds};
use crate::plan::OwnWrite;

/// One object of a kind, as a client of the program writes it.
pub(super) struct Target<'a> {
    pub(super) process: &'a Process,
    pub(super) client: Client,
    pub(super) dice: &'a Dice,
    pub(super) kind: usize,
    pub(super) key: ObjectKey,
}

impl Target<'_> {
    /// Writes, and reports the answer; returns whether anything was written.
    ///
    /// An object that is missing, or exists already, is not written.
    pub(super) async fn write(&self, own: OwnWrite) -> Result<bool, HandlerError> {
        let name = self.key.name();
        let api = self.api();
        let written = match own {
            OwnWrite::Annotate => self.annotate(&api, name).await,
            OwnWrite::Relabel(label) => relabel(&api, name, label).await,
            OwnWrite::Apply => self.apply(&api, name).await,
            OwnWrite::Update => self.update(&api, name).await,
            OwnWrite::Create(is_labelled) => self.create(&api, name, is_labelled).await,
            OwnWrite::Status => self.status(&api, name).await,
            OwnWrite::Delete => return self.delete(&api).await,
            OwnWrite::DeleteLabelled => {
                let labelled = ListParams::default().labels(&format!("{LABEL}=y"));
                let delete = DeleteParams::default();
                // Not reported: a report is about one key, and this concerns many.
                return done(api.delete_collection(&delete, &labelled).await.map(drop));
            }
        };
        done(written.map(|object| {
            let version = object.metadata.resource_version.unwrap_or_default();
            self.process
                .has_written(&gvk(self.kind), &self.key, &version);
        }))
    }

    fn api(&self) -> Api<DynamicObject> {
        let (client, resource) = (self.client.clone(), resource(self.kind));
        match self.key.namespace() {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        }
    }

    async fn annotate(&self, api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject, Error> {
        let note = self.dice.below(1000).to_string();
        let patch = json!({"metadata": {"annotations": {"sim.dev/note": note}}});
        merge(api, name, patch).await
    }

    async fn apply(&self, api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject, Error> {
        let gvk = gvk(self.kind);
        let applied = self.dice.below(5).to_string();
        let object = json!({
            "apiVersion": gvk.api_version(), "kind": gvk.kind(),
            "metadata": {"name": name, "annotations": {"sim.dev/applied": applied}},
        });
        let params = PatchParams::apply("sim").force();
        api.patch(name, &params, &Patch::Apply(object)).await
    }

    async fn update(&self, api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject, Error> {
        let mut object = api.get(name).await?;
        let annotations = object.metadata.annotations.get_or_insert_default();
        let updated = self.dice.below(1000).to_string();
        annotations.insert("sim.dev/updated".to_owned(), updated);
        api.replace(name, &PostParams::default(), &object).await
    }

    async fn create(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        is_labelled: bool,
    ) -> Result<DynamicObject, Error> {
        let mut object = DynamicObject::new(name, &resource(self.kind));
        if is_labelled {
            object.metadata.labels = Some([(LABEL.to_owned(), "x".to_owned())].into());
        }
        api.create(&PostParams::default(), &object).await
    }

    async fn status(&self, api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject, Error> {
        // Only the last kind is a custom one with a status that is free to write.
        if self.kind + 1 < kinds().len() {
            return self.annotate(api, name).await;
        }
        let patch = json!({"status": {"note": self.dice.below(1000)}});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    async fn delete(&self, api: &Api<DynamicObject>) -> Result<bool, HandlerError> {
        let deleted = api.delete(self.key.name(), &DeleteParams::default()).await;
        done(deleted.map(|deleted| {
            let details = deleted.right().and_then(|status| status.details);
            if let Some(uid) = details.map(|of| of.uid).filter(|uid| !uid.is_empty()) {
                self.process.has_deleted(&gvk(self.kind), &self.key, &uid);
            }
        }))
    }
}

async fn merge(
    api: &Api<DynamicObject>,
    name: &str,
    patch: serde_json::Value,
) -> Result<DynamicObject, Error> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
}

async fn relabel(api: &Api<DynamicObject>, name: &str, label: u8) -> Result<DynamicObject, Error> {
    let label = [None, Some("x"), Some("y")][usize::from(label % 3)];
    let patch = json!({"metadata": {"labels": {LABEL: label}}});
    merge(api, name, patch).await
}

/// Missing, existing and conflicting objects are no failures of the program.
fn done(result: Result<(), Error>) -> Result<bool, HandlerError> {
    match result {
        // The plan has other writers race with this one on purpose.
        Err(Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(false),
        result => Ok(result.map(|()| true)?),
    }
}

fn resource(kind: usize) -> ApiResource {
    let of = gvk(kind);
    let gvk = GroupVersionKind::gvk(of.group(), of.version(), of.kind());
    ApiResource::from_gvk_with_plural(&gvk, PLURALS[kind % PLURALS.len()])
}

/// The cache of a kind, from the moment it receives the program's own writes.
pub(super) struct Reader {
    process: Process,
    factory: SharedControllerFactory,
    kind: Gvk,
    store: Arc<Store>,
}

impl Reader {
    /// Returns none if the kind is not cached, or its list has not begun: what is written before that is in it.
    pub(super) fn begun(
        process: &Process,
        factory: &SharedControllerFactory,
        kind: Gvk,
    ) -> Option<Self> {
        let informer = factory.caches().existing(&kind)?;
        let status = informer.status();
        let lists = matches!(status.phase, Phase::Listing { .. });
        (status.loads > 0 || lists).then(|| Self {
            process: process.clone(),
            factory: factory.clone(),
            store: Arc::clone(informer.store()),
            kind,
        })
    }

    /// Returns none if the kind is not cached, or has never been filled.
    pub(super) fn filled(
        process: &Process,
        factory: &SharedControllerFactory,
        kind: Gvk,
    ) -> Option<Self> {
        let loads = factory.caches().existing(&kind)?.status().loads;
        Self::begun(process, factory, kind).filter(|_| loads > 0)
    }

    /// Reads an object, unless the cache has been given up since.
    pub(super) fn read(&self, key: &ObjectKey) {
        let informer = self.factory.caches().existing(&self.kind);
        // A cache that was given up and made again need not contain the write yet.
        if informer.is_some_and(|now| Arc::ptr_eq(now.store(), &self.store)) {
            let object = self.store.get(key);
            self.process.has_read(&self.kind, key, object.as_ref());
        }
    }

    /// Reads an object now and some times later.
    pub(super) async fn read_for_a_while(&self, key: &ObjectKey) {
        self.read(key);
        for pause in [50, 400, 1500, 8000] {
            time::sleep(Duration::from_millis(pause)).await;
            self.read(key);
        }
    }
}
