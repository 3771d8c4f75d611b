//! What the trial's handlers do when they are called.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::{Client, Error};
use lariat_cache::View;
use lariat_controller::{Context, HandlerError, HandlerResult, Outcome};
use lariat_core::{Gvk, ObjectKey};
use serde_json::json;
use tokio::time;

use super::crew::{Dice, gvk};
use super::{PLURALS, kinds};
use crate::activity::Act;
use crate::panics::PLANNED;
use crate::process::Process;
use crate::world::LABEL;

/// How all handlers of a life behave.
pub(super) struct Behaviour {
    process: Process,
    dice: Dice,
    /// Out of a thousand calls, how many misbehave.
    bad: AtomicU32,
    /// Out of a thousand calls, how many write.
    writing: u32,
}

impl Behaviour {
    pub(super) fn new(process: &Process, mut random: fastrand::Rng) -> Self {
        let bad = [0, 50, 200][random.usize(..3)];
        let writing = [0, 100, 400][random.usize(..3)];
        Self {
            process: process.clone(),
            dice: Dice::new(random),
            bad: AtomicU32::new(bad),
            writing,
        }
    }

    /// Misbehaves more often from now on, or less.
    pub(super) fn misbehave(&self, number: u32) {
        self.bad.store(number % 400, Ordering::Relaxed);
    }

    pub(super) async fn handle<K: View>(&self, cx: &Context<K>, kind: usize) -> HandlerResult {
        if self.process.is_calm() {
            return Ok(Outcome::done());
        }
        if self.dice.below(1000) < self.bad.load(Ordering::Relaxed) {
            return self.misbehave_now(cx).await;
        }
        if self.dice.below(1000) < self.writing {
            self.write(cx, kind).await?;
        }
        match self.dice.below(60) {
            0 => Ok(Outcome::requeue_after(self.delay(20_000))),
            1 => {
                let after = self.delay(20_000);
                self.enqueued(cx.gvk(), cx.key(), after);
                cx.enqueue_after(cx.key(), after);
                Ok(Outcome::done())
            }
            2 => {
                let key = self.other_key();
                self.enqueued(cx.gvk(), &key, Duration::ZERO);
                cx.enqueue(&key);
                Ok(Outcome::done())
            }
            _ => Ok(Outcome::done()),
        }
    }

    fn enqueued(&self, kind: &Gvk, key: &ObjectKey, after: Duration) {
        let (kind, key) = (kind.clone(), key.clone());
        self.process.acts(Act::Enqueued { kind, key, after });
    }

    fn delay(&self, most: u32) -> Duration {
        Duration::from_millis(self.dice.below(most).into())
    }

    fn other_key(&self) -> ObjectKey {
        ObjectKey::namespaced("default", &format!("o{}", self.dice.below(12)))
    }

    async fn misbehave_now<K: View>(&self, cx: &Context<K>) -> HandlerResult {
        match self.dice.below(8) {
            0 | 1 => Err("not now".into()),
            2 => Err(HandlerError::from("later").retry_after(self.delay(10_000))),
            3 => Err(HandlerError::terminal("never")),
            4 => std::panic::panic_any(PLANNED),
            5 => std::future::pending().await,
            _ => {
                time::sleep(self.delay(5_000)).await;
                self.read(cx.key(), cx);
                Ok(Outcome::done())
            }
        }
    }

    fn read<K: View>(&self, key: &ObjectKey, cx: &Context<K>) {
        let object = cx.cache().store().get(key);
        self.process.has_read(cx.gvk(), key, object.as_ref());
    }

    /// Writes to the object, or to another one of the kind, and reads what the cache shows then.
    async fn write<K: View>(&self, cx: &Context<K>, kind: usize) -> Result<(), HandlerError> {
        let gvk = gvk(kind);
        let key = if self.dice.below(4) == 0 {
            self.other_key()
        } else {
            cx.key().clone()
        };
        let api = api(cx.client(), kind, &key);
        let name = key.name();
        let written = match self.dice.below(16) {
            0..4 => self.annotate(&api, name).await,
            4..6 => self.relabel(&api, name).await,
            6..8 => self.apply(&api, name, kind).await,
            8..10 => self.update(&api, name).await,
            10..12 => self.create(&api, name, kind).await,
            12 => self.status(&api, name, kind).await,
            13 => {
                let all = ListParams::default().labels("app=y");
                api.delete_collection(&DeleteParams::default(), &all)
                    .await?;
                return Ok(());
            }
            _ => {
                self.delete(&api, &gvk, &key).await?;
                self.read(&key, cx);
                return Ok(());
            }
        };
        match written {
            Ok(object) => {
                let version = object.metadata.resource_version.unwrap_or_default();
                self.process.has_written(&gvk, &key, &version);
                self.read(&key, cx);
                if self.dice.below(3) == 0 {
                    time::sleep(self.delay(8_000)).await;
                    self.read(&key, cx);
                }
                Ok(())
            }
            // What is not there, or is there already, or has changed meanwhile, is no failure of the handler.
            Err(Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn annotate(&self, api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject, Error> {
        let note = self.dice.below(1000).to_string();
        let patch = json!({"metadata": {"annotations": {"sim.dev/note": note}}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    async fn relabel(&self, api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject, Error> {
        let label = [None, Some("x"), Some("y")][self.dice.below(3) as usize];
        let patch = json!({"metadata": {"labels": {LABEL: label}}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    async fn apply(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        kind: usize,
    ) -> Result<DynamicObject, Error> {
        let gvk = gvk(kind);
        let object = json!({
            "apiVersion": gvk.api_version(), "kind": gvk.kind(),
            "metadata": {"name": name, "annotations": {"sim.dev/applied": self.dice.below(5).to_string()}},
        });
        api.patch(
            name,
            &PatchParams::apply("sim").force(),
            &Patch::Apply(object),
        )
        .await
    }

    async fn update(&self, api: &Api<DynamicObject>, name: &str) -> Result<DynamicObject, Error> {
        let mut object = api.get(name).await?;
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(
            "sim.dev/updated".to_owned(),
            self.dice.below(1000).to_string(),
        );
        api.replace(name, &PostParams::default(), &object).await
    }

    async fn create(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        kind: usize,
    ) -> Result<DynamicObject, Error> {
        let mut object = DynamicObject::new(name, &resource(kind));
        if self.dice.below(2) == 0 {
            object.metadata.labels = Some([(LABEL.to_owned(), "x".to_owned())].into());
        }
        api.create(&PostParams::default(), &object).await
    }

    async fn status(
        &self,
        api: &Api<DynamicObject>,
        name: &str,
        kind: usize,
    ) -> Result<DynamicObject, Error> {
        if kind + 1 < kinds().len() {
            return self.annotate(api, name).await;
        }
        let patch = json!({"status": {"note": self.dice.below(1000)}});
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    async fn delete(
        &self,
        api: &Api<DynamicObject>,
        gvk: &Gvk,
        key: &ObjectKey,
    ) -> Result<(), HandlerError> {
        match api.delete(key.name(), &DeleteParams::default()).await {
            Ok(deleted) => {
                let uid = deleted
                    .right()
                    .and_then(|status| status.details)
                    .map(|of| of.uid);
                if let Some(uid) = uid.filter(|uid| !uid.is_empty()) {
                    self.process.has_deleted(gvk, key, &uid);
                }
                Ok(())
            }
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn resource(kind: usize) -> ApiResource {
    let of = gvk(kind);
    let gvk = GroupVersionKind::gvk(of.group(), of.version(), of.kind());
    ApiResource::from_gvk_with_plural(&gvk, PLURALS[kind % PLURALS.len()])
}

fn api(client: Client, kind: usize, key: &ObjectKey) -> Api<DynamicObject> {
    match key.namespace() {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource(kind)),
        None => Api::all_with(client, &resource(kind)),
    }
}
