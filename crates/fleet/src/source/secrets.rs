//! Reads clusters from kubeconfigs in Secrets of a hub cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use lariat_cache::Metadata;
use lariat_client::is_missing;
use lariat_controller::{
    Context, HandlerError, HandlerOptions, HandlerResult, Outcome, Predicate,
    SharedControllerFactory,
};
use lariat_core::{Gvk, LabelSelector, ObjectKey};
use tokio_util::sync::CancellationToken;

use crate::error::FleetError;
use crate::wanted::{Access, SourceId, WantedClusters};

/// How long to wait before a cluster is added again if its name is taken.
const TAKEN: Duration = Duration::from_secs(30);

/// The Secrets of a hub that contain kubeconfigs.
pub(super) struct Secrets {
    /// The factory of the hub.
    pub(super) hub: SharedControllerFactory,
    /// The label selector of the Secrets, not parsed yet.
    selector: String,
    /// How the clusters are named.
    naming: Naming,
    /// The namespace to which the source is restricted; `None` for all.
    pub(super) namespace: Option<String>,
    /// The key of the kubeconfig in the data of a Secret.
    pub(super) data_key: String,
}

/// How clusters are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// By the name of the Secret.
    Secret,
    /// By the name of the Secret without `-kubeconfig`.
    ///
    /// Other Secrets with Cluster API's label are ignored.
    ClusterApi,
}

impl Secrets {
    /// Creates a source with the default key of its naming.
    pub(super) fn new(hub: &SharedControllerFactory, selector: &str, naming: Naming) -> Self {
        let data_key = match naming {
            Naming::Secret => "kubeconfig",
            Naming::ClusterApi => "value",
        };
        Self {
            hub: hub.clone(),
            selector: selector.to_owned(),
            naming,
            namespace: None,
            data_key: data_key.to_owned(),
        }
    }

    /// Registers a handler for the Secrets, and waits until the token is cancelled.
    pub(super) async fn follow(
        &self,
        id: SourceId,
        wanted: Arc<WantedClusters>,
        until: CancellationToken,
    ) -> Result<(), FleetError> {
        let failed = |source| FleetError::Source {
            source_name: format!("Secrets with labels {:?}", self.selector),
            source,
        };
        // Each replica would have the clusters of its share, and those of Secrets that have moved to another replica.
        if self.hub.shards().is_some() {
            return Err(failed(
                "the factory of the hub divides keys among replicas: give the hub a leader election instead of shards"
                    .into(),
            ));
        }
        let selector: LabelSelector = self
            .selector
            .parse()
            .map_err(|error| failed(Box::new(error)))?;
        let secrets = self.hub.for_kind(Gvk::new("", "v1", "Secret"));
        let secrets = secrets.view::<Metadata>();
        let options = HandlerOptions::default()
            .only(Predicate::labels(selector.clone()))
            .until(until.clone());
        let following = Arc::new(Following {
            selector,
            naming: self.naming,
            namespace: self.namespace.clone(),
            data_key: self.data_key.clone(),
            id,
            wanted,
        });
        let handler = move |cx: Context<Metadata>| {
            let following = Arc::clone(&following);
            async move { following.read(&cx).await }
        };
        let name = format!("fleet-clusters-{}", id.0);
        let registered = secrets.register_handler(&name, options.handler(handler));
        registered.map_err(|error| failed(Box::new(error)))?;
        until.cancelled().await;
        Ok(())
    }
}

/// The state of the handler.
struct Following {
    /// The label selector.
    selector: LabelSelector,
    /// How the clusters are named.
    naming: Naming,
    /// The namespace to which the source is restricted; `None` for all.
    namespace: Option<String>,
    /// The key of the kubeconfig.
    data_key: String,
    /// The number of the source.
    id: SourceId,
    /// The clusters of the fleet.
    wanted: Arc<WantedClusters>,
}

impl Following {
    /// Handles a change of a Secret.
    async fn read(&self, cx: &Context<Metadata>) -> HandlerResult {
        let Some(name) = self.name(cx.key()) else {
            return Ok(Outcome::done());
        };
        // A Secret that was deleted, or that lost its label, removes its cluster.
        let named = cx.raw().filter(|it| self.selector.matches(it.labels()));
        if named.is_none() {
            self.wanted.remove(self.id, &name);
            return Ok(Outcome::done());
        }
        let namespace = cx.key().namespace().unwrap_or_default();
        let api: Api<Secret> = Api::namespaced(cx.client(), namespace);
        // Only metadata is watched, so the kubeconfig itself is read from the API server.
        let secret = match api.get(cx.key().name()).await {
            Ok(secret) => secret,
            // The watch reports the deletion, or the next Secret of the name.
            Err(error) if is_missing(&error) => return Ok(Outcome::done()),
            // Also if Secrets are not served.
            Err(error) => return Err(error.into()),
        };
        let data = secret.data.unwrap_or_default();
        // A cluster that had a kubeconfig keeps it until the Secret is deleted.
        let Some(text) = data.get(&self.data_key) else {
            let key = &self.data_key;
            return Err(HandlerError::terminal(format!(
                "the Secret has no key {key:?} with a kubeconfig"
            )));
        };
        let access = Access::Text(text.0.as_slice().into());
        if self.wanted.set(self.id, &name, access) {
            return Ok(Outcome::done());
        }
        // Retried, because the other source may give up the name.
        let taken = format!("another source has a cluster named {name:?}");
        Err(HandlerError::from(taken).retry_after(TAKEN))
    }

    /// Returns the cluster name of a Secret; `None` if the source ignores the Secret.
    fn name(&self, key: &ObjectKey) -> Option<Arc<str>> {
        let namespace = key.namespace().unwrap_or_default();
        let name = match self.naming {
            Naming::Secret => key.name(),
            Naming::ClusterApi => key.name().strip_suffix("-kubeconfig")?,
        };
        match &self.namespace {
            Some(only) => (only == namespace).then(|| name.into()),
            None => Some(format!("{namespace}/{name}").into()),
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field("selector", &self.selector)
            .field("naming", &self.naming)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
