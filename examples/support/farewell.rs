//! The end of an example: what it made is taken away, and nothing else.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::kube::Error;
use lariat::kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams};
use tokio::time::{sleep, timeout};

use super::stage::EXAMPLE;
use super::{Paint, RUN, Stage, delete, paint, say};

/// How long the objects of an example may take to go, finalizers included: those may wait for pods, which may take half
/// a minute to end.
const FAREWELL: Duration = Duration::from_secs(45);
/// After how long it is said what is waited for.
const SILENCE: Duration = Duration::from_secs(3);
/// How often it is looked what is left.
const LOOK: Duration = Duration::from_millis(50);

/// An object that is still there.
struct Left {
    resource: ApiResource,
    object: DynamicObject,
}

impl Stage {
    /// Ends the example: its objects first, while their finalizers are looked after.
    pub(super) async fn leave(self) -> Result<()> {
        let removed = self.remove_objects().await;
        let stopped = self.operator.stop().await;
        self.ending.cancel();
        self.tasks.close();
        let ended = timeout(FAREWELL, self.tasks.wait()).await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let mut cleaned = Ok(());
        for namespace in self.namespaces() {
            cleaned = cleaned.and(delete(&namespaces, &namespace).await);
        }
        cleaned = cleaned.and(self.remove_definitions().await);
        self.place.leave().await;
        say("stopped");
        removed?;
        cleaned?;
        stopped?;
        ended.context("tasks of the example go on after the operator has stopped")
    }

    /// Deletes the objects the example has of the kinds it defined, and waits until they are gone.
    async fn remove_objects(&self) -> Result<()> {
        let mut left = Vec::new();
        let removal = async {
            let mut looks: u32 = 0;
            loop {
                left = self.delete_objects().await?;
                if left.is_empty() {
                    return anyhow::Ok(());
                }
                looks += 1;
                if LOOK * looks == SILENCE {
                    let names = left.iter().map(Left::to_string).collect::<Vec<_>>();
                    let line = format!("  waiting until {} is gone", names.join(", "));
                    say(paint(Paint::Dim, line, 0));
                }
                sleep(LOOK).await;
            }
        };
        if let Ok(removed) = timeout(FAREWELL, removal).await {
            return removed;
        }
        let mut text = format!("not all objects of the example have gone within {FAREWELL:?}:");
        for left in left {
            text += &format!("\n  {left}, which {}", left.held_by());
            // The embedded cluster ends with the example, and its objects with it.
            if self.place.embedded.is_none() {
                text += &format!(
                    "; this frees it:\n    {}",
                    left.command(&self.place.kubectl)
                );
            }
        }
        bail!(text)
    }

    /// Deletes the example's objects, and returns those that are still there.
    async fn delete_objects(&self) -> Result<Vec<Left>> {
        let mut left = Vec::new();
        let defined = self.defined.lock().clone();
        for resource in defined {
            let all: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let listed = match all.list(&ListParams::default()).await {
                // The story took the kind away itself.
                Err(Error::Api(status)) if status.code == 404 => continue,
                listed => listed?,
            };
            for object in listed.items.into_iter().filter(|object| self.made(object)) {
                self.remove(&resource, &object).await?;
                let resource = resource.clone();
                left.push(Left { resource, object });
            }
        }
        Ok(left)
    }

    /// Whether an object is the example's, by its namespace or its label.
    fn made(&self, object: &DynamicObject) -> bool {
        let meta = &object.metadata;
        match &meta.namespace {
            Some(namespace) => self.namespaces().contains(namespace),
            None => {
                let run = meta.labels.as_ref().and_then(|labels| labels.get(RUN));
                run == Some(&self.namespace)
            }
        }
    }

    async fn remove(&self, resource: &ApiResource, object: &DynamicObject) -> Result<()> {
        let meta = &object.metadata;
        let api: Api<DynamicObject> = match &meta.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
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

    /// Takes away the kinds that an example has defined, this run or an earlier one, unless somebody uses them.
    async fn remove_definitions(&self) -> Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let defined = self.defined.lock().clone();
        for resource in defined {
            let name = format!("{}.{}", resource.plural, resource.group);
            let Some(found) = definitions.get_opt(&name).await? else {
                continue;
            };
            let labels = found.metadata.labels.unwrap_or_default();
            if !labels.contains_key(RUN) || found.metadata.deletion_timestamp.is_some() {
                continue;
            }
            match self.user_of(&resource).await? {
                Some(user) => say(format_args!("{name} stays defined, since {user}")),
                None => delete(&definitions, &name).await?,
            }
        }
        Ok(())
    }

    /// Returns why a kind has to stay: objects that are somebody's, or another run, which may be about to make some.
    async fn user_of(&self, resource: &ApiResource) -> Result<Option<String>> {
        let objects: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let listed = objects.list(&ListParams::default().limit(1)).await?;
        if !listed.items.is_empty() {
            return Ok(Some("there are objects of it".to_owned()));
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let of_the_example = ListParams::default().labels(&format!("{EXAMPLE}={}", self.name));
        let ours = self.namespaces();
        let mut others = namespaces.list(&of_the_example).await?.items.into_iter();
        let is_another_run = |namespace: &Namespace| {
            let meta = &namespace.metadata;
            meta.deletion_timestamp.is_none()
                && meta.name.as_ref().is_some_and(|name| !ours.contains(name))
        };
        let other = others
            .find(is_another_run)
            .and_then(|other| other.metadata.name);
        Ok(other.map(|name| format!("the run of {name} may use it")))
    }
}

impl Left {
    fn held_by(&self) -> String {
        match self.object.metadata.finalizers.as_deref() {
            None | Some([]) => "has no finalizers".to_owned(),
            Some(finalizers) => format!("is held by {}", finalizers.join(", ")),
        }
    }

    /// Returns the command that lets it go whoever holds it.
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
