//! The end of an example: its objects are deleted, and nothing else.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use lariat::kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use lariat::kube::{Client, Error};
use tokio::time::{Instant, sleep, timeout};

use super::{Paint, RUN, Stage, delete, paint, remove_crd, say};

/// The timeout for deleting the objects of an example, finalizers included: those may wait for pods, which may take
/// half a minute to end.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(45);
/// The delay before the remaining objects are printed.
const SILENCE: Duration = Duration::from_secs(3);
/// The first and the longest pause between two checks of what is left.
const LOOKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A CRD that was installed for the example, by this run or another.
#[derive(Debug, Clone)]
pub(super) struct Defined {
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
}

/// An object that still exists.
struct Left {
    resource: ApiResource,
    object: DynamicObject,
}

impl Stage {
    /// Ends the example: deletes its objects, until `enough` resolves.
    pub(super) async fn leave(self, enough: impl Future<Output = ()>) -> Result<()> {
        let left = tokio::select! {
            left = self.clean_up() => left,
            () = enough => self.report_left().await,
        };
        self.target.leave().await;
        say("stopped");
        left
    }

    /// Deletes everything: the objects first, while the operator can still handle their finalizers.
    async fn clean_up(&self) -> Result<()> {
        let removed = self.remove_objects().await;
        let stopped = self.operator.stop().await;
        self.ending.cancel();
        self.tasks.close();
        let ended = timeout(CLEANUP_TIMEOUT, self.tasks.wait()).await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let mut cleaned = Ok(());
        for namespace in self.namespaces() {
            cleaned = cleaned.and(delete(&namespaces, &namespace).await);
        }
        cleaned = cleaned.and(self.remove_crds().await);
        removed?;
        cleaned?;
        stopped?;
        ended.context("tasks of the example still run after the operator has stopped")
    }

    /// Returns an error with what is left of the example.
    async fn report_left(&self) -> Result<()> {
        self.step("stopping");
        // The embedded cluster ends with the example, with everything in it.
        if self.target.embedded.is_some() {
            return Ok(());
        }
        let mut text =
            "interrupted before all objects of the example were deleted; left are:".to_owned();
        let looked = timeout(SILENCE, async {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            for name in self.namespaces() {
                if namespaces.get_opt(&name).await?.is_some() {
                    text += &format!("\n  namespaces/{name}");
                }
            }
            for left in self.objects().await? {
                text += &self.describe_left(&left);
            }
            anyhow::Ok(())
        });
        let looked = looked.await.map_err(anyhow::Error::from).flatten();
        if looked.is_err() {
            text += "\n  objects that cannot be listed now";
        }
        bail!(text)
    }

    /// Deletes the example's objects of its CRDs, and waits until they are deleted.
    async fn remove_objects(&self) -> Result<()> {
        let mut left = Vec::new();
        let removal = async {
            let (mut pause, longest) = LOOKS;
            let mut silent_until = Some(Instant::now() + SILENCE);
            loop {
                left = self.delete_objects().await?;
                if left.is_empty() {
                    return anyhow::Ok(());
                }
                if silent_until.take_if(|end| *end <= Instant::now()).is_some() {
                    let names = left.iter().map(Left::to_string).collect::<Vec<_>>();
                    let line = format!("  waiting until {} is deleted", names.join(", "));
                    say(paint(Paint::Dim, line, 0));
                }
                sleep(pause).await;
                pause = longest.min(2 * pause);
            }
        };
        if let Ok(removed) = timeout(CLEANUP_TIMEOUT, removal).await {
            return removed;
        }
        let mut text =
            format!("not all objects of the example were deleted within {CLEANUP_TIMEOUT:?}:");
        left.iter()
            .for_each(|left| text += &self.describe_left(left));
        bail!(text)
    }

    /// Returns what keeps an object, and the command to remove it.
    fn describe_left(&self, left: &Left) -> String {
        let text = format!("\n  {left}, which {}", left.kept_by());
        // The embedded cluster ends with the example, with its objects.
        match self.target.embedded {
            Some(_) => text,
            None => {
                let command = left.command(&self.target.kubectl);
                format!("{text}; this removes it:\n    {command}")
            }
        }
    }

    /// Deletes the example's objects, and returns those that still exist.
    async fn delete_objects(&self) -> Result<Vec<Left>> {
        let left = self.objects().await?;
        for each in &left {
            each.remove(&self.client).await?;
        }
        Ok(left)
    }

    /// Returns the example's objects: those in its namespaces, and cluster-scoped ones with its label.
    async fn objects(&self) -> Result<Vec<Left>> {
        let mut left = Vec::new();
        let defined = self.defined.lock().clone();
        for Defined {
            resource,
            namespaced,
        } in defined
        {
            let (client, all) = (&self.client, ListParams::default());
            let lists = if namespaced {
                let own = |name: &String| Api::namespaced_with(client.clone(), name, &resource);
                let apis = self.namespaces().iter().map(own).collect();
                (apis, all)
            } else {
                let ours = all.labels(&format!("{RUN}={}", self.namespace));
                (vec![Api::all_with(client.clone(), &resource)], ours)
            };
            let (apis, params): (Vec<Api<DynamicObject>>, _) = lists;
            for api in apis {
                let listed = match api.list(&params).await {
                    // The story has deleted the CRD itself.
                    Err(Error::Api(status)) if status.code == 404 => continue,
                    listed => listed?,
                };
                let found = listed.items.into_iter().map(|object| Left {
                    resource: resource.clone(),
                    object,
                });
                left.extend(found);
            }
        }
        Ok(left)
    }

    /// Deletes the CRDs that an example has installed, unless they are used.
    async fn remove_crds(&self) -> Result<()> {
        let defined = self.defined.lock().clone();
        for Defined { resource, .. } in defined {
            remove_crd(&self.client, &resource, &self.name, &self.namespaces()).await?;
        }
        Ok(())
    }
}

impl Left {
    /// Deletes it, unless it is being deleted already.
    async fn remove(&self, client: &Client) -> Result<()> {
        let meta = &self.object.metadata;
        let api: Api<DynamicObject> = match &meta.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        };
        if meta.deletion_timestamp.is_some() {
            return Ok(());
        }
        let name = meta.name.as_deref().unwrap_or_default();
        match api.delete(name, &DeleteParams::default()).await {
            Err(Error::Api(status)) if status.code == 404 => Ok(()),
            other => other
                .map(drop)
                .with_context(|| format!("cannot delete {name}")),
        }
    }

    fn kept_by(&self) -> String {
        match self.object.metadata.finalizers.as_deref() {
            None | Some([]) => "has no finalizers".to_owned(),
            Some(finalizers) => format!("is kept by {}", finalizers.join(", ")),
        }
    }

    /// Returns the command that removes its finalizers.
    fn command(&self, kubectl: &str) -> String {
        let meta = &self.object.metadata;
        let namespace = meta.namespace.as_ref();
        let namespace = namespace.map_or(String::new(), |name| format!(" --namespace {name}"));
        let patch = r#"'{"metadata": {"finalizers": null}}'"#;
        format!("{kubectl}{namespace} patch {self} --type merge --patch {patch}")
    }
}

/// As kubectl has it: `machines.useless.container.training/robot`.
impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (resource, name) = (&self.resource, self.object.metadata.name.as_deref());
        let name = name.unwrap_or_default();
        write!(f, "{}.{}/{name}", resource.plural, resource.group)
    }
}
