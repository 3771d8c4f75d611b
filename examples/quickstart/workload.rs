//! A small workload: pods and widgets are created, changed and deleted.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::kube::api::{Api, ApiResource, Patch, PatchParams};
use lariat::prelude::*;
use lariat_examples::{
    EXAMPLE, delete, ensure, ensure_crd, ensure_namespace, forget, remove_crd, unique,
    until_printed,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::journal::Journal;

/// The pause between two changes.
const PACE: Duration = Duration::from_millis(120);

/// The timeout until a CRD is established.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The label value of the namespaces of all runs.
const NAME: &str = "quickstart";
const DEFINITION: &str = "widgets.demo.dev";
const PODS: [&str; 3] = ["web-0", "web-1", "web-2"];
const WIDGETS: [&str; 2] = ["lever", "spring"];

/// The custom kind.
pub(crate) fn widget() -> Gvk {
    Gvk::new("demo.dev", "v1", "Widget")
}

/// The objects of one run, in a namespace of their own.
pub(crate) struct Workload {
    client: Client,
    namespace: String,
    pods: Api<Pod>,
    widgets: Api<DynamicObject>,
    resource: ApiResource,
}

impl Workload {
    /// Chooses the names of a run; nothing is sent.
    pub(crate) fn new(client: Client) -> Self {
        let namespace = unique("lariat-quickstart");
        let resource = ApiResource {
            group: "demo.dev".into(),
            version: "v1".into(),
            api_version: "demo.dev/v1".into(),
            kind: "Widget".into(),
            plural: "widgets".into(),
        };
        Self {
            pods: Api::namespaced(client.clone(), &namespace),
            widgets: Api::namespaced_with(client.clone(), &namespace, &resource),
            client,
            namespace,
            resource,
        }
    }

    /// Creates the namespace and the CRD.
    pub(crate) async fn prepare(&self) -> Result<()> {
        ensure_namespace(&self.client, &self.namespace, &[(EXAMPLE, NAME)]).await?;
        let definition = serde_json::from_value(definition())?;
        ensure_crd(&self.client, definition, &self.namespace).await?;
        established(&Api::all(self.client.clone())).await
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Runs the workload: once, or forever.
    pub(crate) async fn run(&self, log: &Journal, for_ever: bool) -> Result<()> {
        let mut first = true;
        loop {
            self.round(log).await?;
            if first {
                // It was enqueued with a delay once, before the first round.
                until_printed(1, &["web-1 announce", "enqueued at"]).await?;
                first = false;
            }
            sleep(5 * PACE).await;
            if !for_ever {
                return Ok(());
            }
            self.start_again(log).await?;
            log.note("again; Ctrl-C ends");
        }
    }

    async fn round(&self, log: &Journal) -> Result<()> {
        log.note("pods and widgets are created; one handler fails twice for each new pod");
        for name in PODS {
            self.create_pod(name).await?;
        }
        for name in WIDGETS {
            self.create_widget(name).await?;
        }
        for name in PODS {
            until_printed(1, &[name, "✓ registered"]).await?;
        }
        log.note("they change");
        for name in PODS {
            let patch = json!({"metadata": {"labels": {"version": "v2"}}});
            self.pods
                .patch(name, &PatchParams::default(), &Patch::Merge(patch))
                .await?;
            sleep(PACE).await;
            until_printed(1, &[name, "announce runs v2"]).await?;
        }
        for size in 2..=5 {
            let patch = json!({"spec": {"size": size}});
            self.widgets
                .patch(WIDGETS[0], &PatchParams::default(), &Patch::Merge(patch))
                .await?;
        }
        sleep(PACE).await;
        until_printed(1, &[WIDGETS[0], "has size 5"]).await?;
        log.note("some are deleted");
        delete(&self.pods, PODS[0]).await?;
        until_printed(1, &[PODS[0], "announce is deleted"]).await?;
        sleep(PACE).await;
        delete(&self.widgets, WIDGETS[1]).await?;
        until_printed(1, &[WIDGETS[1], "is deleted"]).await?;
        sleep(PACE).await;
        Ok(())
    }

    /// Deletes what a round left, so that the next starts like the first.
    async fn start_again(&self, log: &Journal) -> Result<()> {
        log.note("the rest is deleted");
        for name in PODS {
            delete(&self.pods, name).await?;
        }
        for name in WIDGETS {
            delete(&self.widgets, name).await?;
        }
        for name in &PODS[1..] {
            until_printed(1, &[name, "announce is deleted"]).await?;
        }
        until_printed(1, &[WIDGETS[0], "is deleted"]).await?;
        sleep(10 * PACE).await;
        // Otherwise lines of this round would satisfy the waits of the next.
        forget();
        Ok(())
    }

    async fn create_pod(&self, name: &str) -> Result<()> {
        let pod = json!({
            "metadata": {"name": name, "labels": {"app": "web", "version": "v1"}},
            "spec": {"containers": [
                {"name": "main", "image": "busybox:stable", "command": ["sleep", "60"]},
            ]},
        });
        ensure(&self.pods, &serde_json::from_value(pod)?).await?;
        sleep(PACE).await;
        Ok(())
    }

    async fn create_widget(&self, name: &str) -> Result<()> {
        let widget = json!({
            "apiVersion": "demo.dev/v1", "kind": "Widget",
            "metadata": {"name": name}, "spec": {"size": 1},
        });
        ensure(&self.widgets, &serde_json::from_value(widget)?).await?;
        sleep(PACE).await;
        Ok(())
    }

    /// Deletes everything; continues after errors, and returns the first.
    pub(crate) async fn clean_up(&self) -> Result<()> {
        let mut outcome = Ok(());
        for name in PODS {
            outcome = outcome.and(delete(&self.pods, name).await);
        }
        for name in WIDGETS {
            outcome = outcome.and(delete(&self.widgets, name).await);
        }
        let namespaces = Api::<Namespace>::all(self.client.clone());
        outcome = outcome.and(delete(&namespaces, &self.namespace).await);
        // Another run, or a user, may have Widgets.
        let ours = std::slice::from_ref(&self.namespace);
        let removed = remove_crd(&self.client, &self.resource, NAME, ours).await;
        outcome.and(removed)
    }
}

async fn established(definitions: &Api<CustomResourceDefinition>) -> Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        let definition = definitions.get(DEFINITION).await?;
        let conditions = definition
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        if conditions
            .iter()
            .any(|each| each.type_ == "Established" && each.status == "True")
        {
            return Ok(());
        }
        sleep(Duration::from_millis(20)).await;
    }
    None.with_context(|| format!("{DEFINITION} is not established after {TIMEOUT:?}"))
}

fn definition() -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    json!({
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "demo.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}
