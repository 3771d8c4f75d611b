//! The REST mapper: which resource serves a kind.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use lariat_core::{Gvk, ResourceKind, Scope, debug_as_description};
use tokio::sync::Mutex;
use tokio::time;

/// Looks kinds up in the API server's discovery, one request for a group and version.
///
/// Answers are kept; a kind that is missing in what is kept is looked up again, so a kind that was
/// defined since is found. Groups are looked up apart: one that does not answer affects only its own
/// kinds.
#[derive(Clone)]
pub struct RestMapper {
    client: Client,
    /// By group and version. Locked while a request is under way, so that many who ask at once cause
    /// one request.
    known: Arc<Mutex<HashMap<String, Known>>>,
}

type Known = Arc<Mutex<Option<Arc<Vec<ResourceKind>>>>>;

/// A kind that could not be looked up.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum MapperError {
    /// The API server does not serve the kind.
    #[error(
        "{gvk} is not served by the API server; is its CustomResourceDefinition installed, and are \
         group, version and kind spelled right?"
    )]
    UnknownKind {
        /// The kind.
        gvk: Gvk,
    },
    /// The API server does not serve the resource.
    #[error("{resource} is not served by the API server under {api_path}")]
    UnknownResource {
        /// The path of group and version.
        api_path: String,
        /// The plural resource name.
        resource: String,
    },
    /// Discovery did not answer.
    #[error("cannot look up {api_path}")]
    Discovery {
        /// The path of group and version.
        api_path: String,
        /// What the client says.
        source: kube::Error,
    },
    /// Discovery was asked and said nothing.
    #[error("cannot look up {api_path}: no answer from the API server within {after:?}")]
    Unanswered {
        /// The path of group and version.
        api_path: String,
        /// How long was waited.
        after: Duration,
    },
}

/// How long discovery may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

debug_as_description!(MapperError);

impl MapperError {
    /// Returns whether the API server answered, and does not know what was asked for.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::UnknownKind { .. } | Self::UnknownResource { .. }
        )
    }
}

impl RestMapper {
    /// Makes a mapper that knows nothing yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            known: Arc::default(),
        }
    }

    /// Finds the resource of a kind.
    ///
    /// # Errors
    ///
    /// The kind is not served, or discovery does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn kind(&self, gvk: &Gvk) -> Result<ResourceKind, MapperError> {
        let found = self
            .find(&gvk.api_path(), |resource| resource.gvk() == gvk)
            .await?;
        found.ok_or_else(|| MapperError::UnknownKind { gvk: gvk.clone() })
    }

    /// Finds the kind of a resource, given its group, version and plural name.
    ///
    /// # Errors
    ///
    /// The resource is not served, or discovery does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Result<ResourceKind, MapperError> {
        let api_path = Gvk::new(group, version, "").api_path();
        let found = self
            .find(&api_path, |resource| resource.plural() == plural)
            .await?;
        found.ok_or_else(|| MapperError::UnknownResource {
            api_path,
            resource: plural.to_owned(),
        })
    }

    async fn find(
        &self,
        api_path: &str,
        matches: impl Fn(&ResourceKind) -> bool,
    ) -> Result<Option<ResourceKind>, MapperError> {
        let entry = Arc::clone(
            self.known
                .lock()
                .await
                .entry(api_path.to_owned())
                .or_default(),
        );
        let mut known = entry.lock().await;
        let search = |resources: &[ResourceKind]| resources.iter().find(|r| matches(r)).cloned();
        if let Some(found) = known.as_ref().and_then(|resources| search(resources)) {
            return Ok(Some(found));
        }
        let resources = Arc::new(self.discover(api_path).await?);
        *known = Some(Arc::clone(&resources));
        Ok(search(&resources))
    }

    /// Asks the API server for the resources of a group and version; none if it does not serve them.
    async fn discover(&self, api_path: &str) -> Result<Vec<ResourceKind>, MapperError> {
        let failed = |source| MapperError::Discovery {
            api_path: api_path.to_owned(),
            source,
        };
        let request = Request::get(api_path).body(Vec::new());
        let request = request.map_err(|error| failed(kube::Error::HttpError(error)))?;
        let answer = time::timeout(ANSWER_TIMEOUT, self.client.request_text(request));
        let answer = answer.await.map_err(|_| MapperError::Unanswered {
            api_path: api_path.to_owned(),
            after: ANSWER_TIMEOUT,
        })?;
        let text = match answer {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.code == 404 => {
                return Ok(Vec::new());
            }
            answer => answer.map_err(failed)?,
        };
        let list: APIResourceList =
            serde_json::from_str(&text).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        Ok(resources_of(&list))
    }
}

/// Returns the resources of a discovery document that are not subresources.
fn resources_of(list: &APIResourceList) -> Vec<ResourceKind> {
    let (group, version) = list
        .group_version
        .split_once('/')
        .unwrap_or(("", &list.group_version));
    let resources = list
        .resources
        .iter()
        .filter(|resource| !resource.name.contains('/'));
    let resource = |resource: &k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource| {
        let scope = if resource.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        ResourceKind::new(
            Gvk::new(group, version, &resource.kind),
            &resource.name,
            scope,
        )
    };
    resources.map(resource).collect()
}

impl std::fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RestMapper")
    }
}
