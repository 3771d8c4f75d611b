//! The end of an example: its objects are deleted, and nothing else.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use lariat::kube::Error;
use lariat::kube::api::{Api, ApiResource, DynamicObject, ListParams};
use tokio::time::{Instant, sleep, timeout};

use super::{Paint, RUN, Stage, delete, paint, remove_crd, say};

/// The timeout for deleting the objects of an example, finalizers included: those may wait for pods, which may take
/// half a minute to end.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(45);
/// The delay before the remaining objects are printed.
const SILENCE: Duration = Duration::from_secs(3);
/// The pause between two checks of what is left.
const PAUSE: Duration = Duration::from_millis(200);

/// An object that still exists.
struct Left {
    resource: ApiResource,
    api: Api<DynamicObject>,
    object: DynamicObject,
}

impl Stage {
    /// Ends the example: deletes its objects, until `enough` resolves.
    pub(super) async fn leave(self, enough: impl Future<Output = ()>) -> Result<()> {
        let left = tokio::select! {
            left = self.clean_up() => left,
            () = enough => self.interrupted(),
        };
        self.target.leave().await;
        say("stopped");
        left
    }

    fn interrupted(&self) -> Result<()> {
        self.step("stopping");
        // The embedded cluster ends with the example, with everything in it.
        if self.target.embedded.is_none() {
            let namespaces = self.namespaces().join(" ");
            bail!(
                "interrupted before all objects of the example were deleted, in the namespaces {namespaces}"
            );
        }
        Ok(())
    }

    /// Deletes everything: the objects first, while the operator can still handle their finalizers.
    async fn clean_up(&self) -> Result<()> {
        let removed = self.remove_objects().await;
        let stopped = self.operator.stop().await;
        self.ending.cancel();
        self.tasks.close();
        let ended = timeout(CLEANUP_TIMEOUT, self.tasks.wait()).await;
        let (namespaces, ours) = (
            Api::<Namespace>::all(self.client.clone()),
            self.namespaces(),
        );
        let mut cleaned = Ok(());
        for namespace in &ours {
            cleaned = cleaned.and(delete(&namespaces, namespace).await);
        }
        for resource in self.defined() {
            cleaned = cleaned.and(remove_crd(&self.client, &resource, &self.name, &ours).await);
        }
        removed?;
        cleaned?;
        stopped?;
        ended.context("tasks of the example still run after the operator has stopped")
    }

    /// Deletes the example's objects of its CRDs, and waits until they are deleted.
    async fn remove_objects(&self) -> Result<()> {
        let (began, mut silent) = (Instant::now(), true);
        loop {
            let left = self.objects().await?;
            let names = || left.iter().map(Left::to_string).collect::<Vec<_>>();
            if left.is_empty() {
                return Ok(());
            }
            if began.elapsed() >= CLEANUP_TIMEOUT {
                let names = names().join("\n  ");
                bail!(
                    "not all objects of the example were deleted within {CLEANUP_TIMEOUT:?}:\n  {names}"
                );
            }
            if silent && began.elapsed() >= SILENCE {
                let line = format!("  waiting until {} is deleted", names().join(", "));
                say(paint(Paint::Dim, line, 0));
                silent = false;
            }
            for each in left.iter().filter(|left| !left.is_going()) {
                delete(&each.api, each.name()).await?;
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns the example's objects: those in its namespaces, and cluster-scoped ones with its label.
    async fn objects(&self) -> Result<Vec<Left>> {
        let (mut left, ours) = (Vec::new(), self.namespaces());
        for resource in self.defined() {
            let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let listed = match all.list(&ListParams::default()).await {
                // The story has deleted the CRD itself.
                Err(Error::Api(status)) if status.code == 404 => continue,
                listed => listed?,
            };
            for object in listed {
                let run = object.metadata.labels.as_ref().and_then(|all| all.get(RUN));
                let api = match &object.metadata.namespace {
                    Some(name) if ours.contains(name) => {
                        Api::namespaced_with(self.client.clone(), name, &resource)
                    }
                    None if run == Some(&self.namespace) => all.clone(),
                    _ => continue,
                };
                let resource = resource.clone();
                left.push(Left {
                    resource,
                    api,
                    object,
                });
            }
        }
        Ok(left)
    }
}

impl Left {
    fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    fn is_going(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }
}

/// As kubectl has it: `machines.useless.container.training/robot`; then its finalizers.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ApiResource { plural, group, .. } = &self.resource;
        write!(f, "{plural}.{group}/{}", self.name())?;
        match self.object.metadata.finalizers.as_deref() {
            None | Some([]) => Ok(()),
            Some(finalizers) => write!(f, " (with the finalizer {})", finalizers.join(", ")),
        }
    }
}
