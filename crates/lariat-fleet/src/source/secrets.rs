//! Kubeconfigs in Secrets of a hub cluster.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use lariat_cache::Metadata;
use lariat_controller::{
    Context, HandlerError, HandlerOptions, HandlerResult, Outcome, Predicate,
    SharedControllerFactory,
};
use lariat_core::{Gvk, LabelSelector, ObjectKey};
use tokio_util::sync::CancellationToken;

use crate::error::FleetError;
use crate::wanted::{Access, SourceId, WantedClusters};

/// How long a Secret waits before its cluster is added again, if another source has the name.
const TAKEN: Duration = Duration::from_secs(30);

/// The Secrets of a hub that have kubeconfigs.
pub(super) struct Secrets {
    hub: SharedControllerFactory,
    selector: String,
    naming: Naming,
    pub(super) namespace: Option<String>,
    pub(super) data_key: String,
}

/// How clusters are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// By the name of the Secret.
    Secret,
    /// By the name of the Secret without `-kubeconfig`; Cluster API has other Secrets with the label.
    ClusterApi,
}

impl Secrets {
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

    /// Writes down the clusters until the token is cancelled.
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

/// What the handler of the Secrets needs.
struct Following {
    selector: LabelSelector,
    naming: Naming,
    namespace: Option<String>,
    data_key: String,
    id: SourceId,
    wanted: Arc<WantedClusters>,
}

impl Following {
    async fn read(&self, cx: &Context<Metadata>) -> HandlerResult {
        let Some(name) = self.name(cx.key()) else {
            return Ok(Outcome::done());
        };
        let named = cx.raw().filter(|it| self.selector.matches(it.labels()));
        if named.is_none() {
            self.wanted.remove(self.id, &name);
            return Ok(Outcome::done());
        }
        let namespace = cx.key().namespace().unwrap_or_default();
        let api: Api<Secret> = Api::namespaced(cx.client(), namespace);
        let Some(secret) = api.get_opt(cx.key().name()).await? else {
            self.wanted.remove(self.id, &name);
            return Ok(Outcome::done());
        };
        let data = secret.data.unwrap_or_default();
        let Some(text) = data.get(&self.data_key) else {
            // A cluster that had a kubeconfig keeps it until the Secret is deleted.
            let key = &self.data_key;
            return Err(HandlerError::terminal(format!(
                "the Secret has no key {key:?} with a kubeconfig"
            )));
        };
        let access = Access::Text(text.0.as_slice().into());
        if self.wanted.set(self.id, &name, access) {
            return Ok(Outcome::done());
        }
        // Until the other source gives the name up.
        let taken = format!("another source has the cluster {name:?}");
        Err(HandlerError::from(taken).retry_after(TAKEN))
    }

    /// Returns the name of the cluster of a Secret; none if it is not of this source.
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
