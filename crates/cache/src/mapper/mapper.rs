//! The mapper from kinds to resources, and its cache of discovery.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use lariat_client::{CountedClient, Single};
use lariat_core::{Gvk, ResourceKind, debug_as_description};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::aggregated::{Paths, Served};
use super::legacy;

/// Maps kinds to resources by the API server's discovery.
///
/// A lookup requests one group and version. Results are cached for ten minutes. A kind that is missing in them is looked
/// up again, at most once a second, so a CRD that was created meanwhile is found. Groups are independent: one that does
/// not answer affects only its own kinds, and its previous results are used.
///
/// ```no_run
/// use lariat::cache::SharedCacheFactory;
/// use lariat::Gvk;
///
/// # async fn example(factory: SharedCacheFactory) -> Result<(), lariat::cache::MapperError> {
/// let mapper = factory.clients().mapper();
/// let deployments = mapper.kind(&Gvk::new("apps", "v1", "Deployment")).await?;
/// assert_eq!(deployments.plural(), "deployments");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RestMapper {
    shared: Arc<Discovery>,
}

struct Discovery {
    client: CountedClient,
    /// The groups and versions that are served or are being looked up, by path.
    groups: Mutex<HashMap<String, Arc<Group>>>,
    /// All kinds, for hints.
    survey: Mutex<Option<(Instant, Arc<Paths>)>>,
    surveying: Single<Arc<Paths>>,
}

/// A group and version.
#[derive(Default)]
struct Group {
    known: Mutex<Option<Known>>,
    asking: Single<Result<Known, MapperError>>,
}

/// What a group and version serve.
#[derive(Clone)]
struct Known {
    resources: Arc<Vec<Served>>,
    at: Instant,
}

/// How long results are used.
const BELIEVED: Duration = Duration::from_secs(600);

/// How long a kind is considered missing.
const MISSING_BELIEVED: Duration = Duration::from_secs(1);

/// How long the versions are believed in which a missing kind is said to be served.
const NAMESAKES_BELIEVED: Duration = Duration::from_secs(60);

/// The error of a lookup of a kind or resource.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum MapperError {
    /// The API server does not serve the kind.
    #[error("{gvk} is not served by the API server; {}", hint(gvk, served))]
    UnknownKind {
        /// The kind.
        gvk: Gvk,
        /// Groups and versions that serve a kind of this name, as far as known.
        ///
        /// Often empty.
        served: Vec<Gvk>,
    },
    /// The API server serves the kind, and not with the verbs that a cache needs.
    #[error("{gvk} can{} be listed and cannot be watched, so there is no cache of it; read it with `KindClient::api`", if *is_listable { "" } else { "not" })]
    NotWatchable {
        /// The kind.
        gvk: Gvk,
        /// Whether it can be listed.
        is_listable: bool,
    },
    /// The API server does not serve the resource.
    #[error("{resource} is not served by the API server under {api_path}")]
    UnknownResource {
        /// The path of group and version.
        api_path: String,
        /// The plural resource name.
        resource: String,
    },
    /// The request failed, was not answered within 30 seconds, or the API server refused it.
    #[error("cannot look up {api_path}")]
    Discovery {
        /// The path of group and version.
        api_path: String,
        /// The client's error.
        source: Arc<kube::Error>,
    },
}

/// Describes what may be wrong with a kind that is not served.
fn hint(gvk: &Gvk, served: &[Gvk]) -> String {
    if served.is_empty() {
        let question = "is its CustomResourceDefinition installed and established, and are group, version and kind \
                        spelled right?";
        // Only groups with a dot can have CRDs.
        let advice = if gvk.group().contains('.') {
            " `operator.installs(…)` installs it at the start, and `MissingKind::Wait` waits for it"
        } else {
            ""
        };
        return format!("{question}{advice}");
    }
    let versions: Vec<String> = in_group(gvk, served).map(Gvk::to_string).collect();
    if !versions.is_empty() {
        return format!("it is served as {}", versions.join(" and "));
    }
    let names: Vec<String> = served.iter().map(Gvk::to_string).collect();
    format!(
        "did you mean {}? If not, its CustomResourceDefinition is not installed",
        names.join(" or ")
    )
}

/// How many bytes a discovery document may have.
///
/// With a thousand CRDs the document of all groups has a few MiB.
const DISCOVERY_LIMIT: usize = 64 * 1024 * 1024;

/// Returns the versions of a kind among its namesakes.
fn in_group<'a>(gvk: &'a Gvk, served: &'a [Gvk]) -> impl Iterator<Item = &'a Gvk> {
    served.iter().filter(|other| other.group() == gvk.group())
}

/// The timeout of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

debug_as_description!(MapperError);

impl MapperError {
    /// Returns whether the API server does not serve the kind or resource.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::UnknownKind { .. } | Self::UnknownResource { .. }
        )
    }

    pub(super) fn discovery(api_path: &str, source: kube::Error) -> Self {
        Self::Discovery {
            api_path: api_path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// Returns the versions of the kind's group that serve it instead.
    pub(crate) fn served_in_group(&self) -> Vec<Gvk> {
        match self {
            Self::UnknownKind { gvk, served } => in_group(gvk, served).cloned().collect(),
            _ => Vec::new(),
        }
    }
}

impl RestMapper {
    /// Creates a mapper without results.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::counting(CountedClient::new(client))
    }

    pub(crate) fn counting(client: CountedClient) -> Self {
        Self {
            shared: Arc::new(Discovery {
                client,
                groups: Mutex::default(),
                survey: Mutex::default(),
                surveying: Single::new(),
            }),
        }
    }

    /// Returns the resource of a kind.
    ///
    /// # Errors
    ///
    /// Fails if the kind is not served ([`MapperError::is_unknown`]), or discovery fails and there is no previous
    /// result.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request in flight and loses nothing else.
    pub async fn kind(&self, gvk: &Gvk) -> Result<ResourceKind, MapperError> {
        Ok(self.served(gvk).await?.resource)
    }

    /// Returns the resource of a kind, with what can be done with it.
    pub(crate) async fn served(&self, gvk: &Gvk) -> Result<Served, MapperError> {
        let found = self
            .find(&gvk.api_path(), |resource| resource.gvk() == gvk)
            .await?;
        match found {
            Some(found) => Ok(found),
            None => Err(MapperError::UnknownKind {
                gvk: gvk.clone(),
                served: self.namesakes(gvk).await,
            }),
        }
    }

    /// Returns kinds of the same name in other groups and versions, for an error.
    async fn namesakes(&self, gvk: &Gvk) -> Vec<Gvk> {
        let survey = self.survey().await;
        let served = survey
            .iter()
            .flat_map(|(_, served)| served.iter().flatten());
        let kinds = served.map(|served| served.resource.gvk());
        let same = kinds.filter(|other| other.kind() == gvk.kind() && *other != gvk);
        let mut namesakes: Vec<Gvk> = same.cloned().collect();
        namesakes.sort();
        namesakes.dedup();
        namesakes
    }

    /// Returns all kinds as of the last minute; none if they cannot be read.
    async fn survey(&self) -> Arc<Paths> {
        let last = self.shared.survey.lock().clone();
        if let Some((_, paths)) = last.filter(|(at, _)| at.elapsed() < NAMESAKES_BELIEVED) {
            return paths;
        }
        let ask = || {
            let this = self.clone();
            let ask = async move {
                let paths = Arc::new(this.all_at_once().await);
                *this.shared.survey.lock() = Some((Instant::now(), Arc::clone(&paths)));
                paths
            };
            ask.boxed()
        };
        self.shared.surveying.join((), ask).await
    }

    /// Returns the kind of a resource, by group, version and plural name.
    ///
    /// # Errors
    ///
    /// Fails if the resource is not served ([`MapperError::is_unknown`]), or discovery fails and there is no previous
    /// result.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request in flight and loses nothing else.
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
        let found = found.map(|served| served.resource);
        found.ok_or_else(|| MapperError::UnknownResource {
            api_path,
            resource: plural.to_owned(),
        })
    }

    async fn find(
        &self,
        api_path: &str,
        matches: impl Fn(&ResourceKind) -> bool,
    ) -> Result<Option<Served>, MapperError> {
        let search = |known: &Known| {
            let mut resources = known.resources.iter();
            resources.find(|served| matches(&served.resource)).cloned()
        };
        let group = self.group(api_path);
        let known = group.known.lock().clone();
        if let Some(known) = &known {
            let age = known.at.elapsed();
            let found = search(known);
            if age < MISSING_BELIEVED || (found.is_some() && age < BELIEVED) {
                return Ok(found);
            }
        }
        match self.ask(&group, api_path).await {
            Ok(known) => Ok(search(&known)),
            // Previous results are better than none.
            Err(error) => known.as_ref().and_then(search).map(Some).ok_or(error),
        }
    }

    fn group(&self, api_path: &str) -> Arc<Group> {
        let mut groups = self.shared.groups.lock();
        if let Some(group) = groups.get(api_path) {
            return Arc::clone(group);
        }
        // Groups that were looked up and are not served must not stay for ever.
        groups.retain(|_, group| Arc::strong_count(group) > 1 || group.is_of_use());
        let group = Arc::<Group>::default();
        groups.insert(api_path.to_owned(), Arc::clone(&group));
        group
    }

    /// Requests a group; concurrent lookups of it share the request, and its failure.
    fn ask(
        &self,
        group: &Arc<Group>,
        api_path: &str,
    ) -> impl Future<Output = Result<Known, MapperError>> + use<> {
        group.asking.join((), || {
            let (this, group, path) = (self.clone(), Arc::clone(group), api_path.to_owned());
            let ask = async move {
                let resources = Arc::new(this.discover(&path).await?);
                let at = Instant::now();
                let known = Known { resources, at };
                *group.known.lock() = Some(known.clone());
                Ok(known)
            };
            ask.boxed()
        })
    }

    /// Forgets the results for the path of a group and version (`/apis/apps/v1`).
    ///
    /// The next lookup sends a request. It is for a program that has just created a CRD. Handles of kinds that were
    /// found keep their resource.
    pub fn forget(&self, api_path: &str) {
        self.shared.groups.lock().remove(api_path);
    }

    /// Requests the resources of a group and version; empty if it is not served.
    async fn discover(&self, api_path: &str) -> Result<Vec<Served>, MapperError> {
        let failed = |source| MapperError::discovery(api_path, source);
        let text = match self.get(api_path, legacy::ACCEPTED).await {
            Err(kube::Error::Api(status)) if is_not_served(&status) => return Ok(Vec::new()),
            answer => answer.map_err(failed)?,
        };
        legacy::served_kinds(&text).map_err(|error| failed(kube::Error::SerdeError(error)))
    }

    pub(super) async fn get(&self, path: &str, accept: &str) -> Result<String, kube::Error> {
        let client = &self.shared.client;
        client
            .get(path, accept, DISCOVERY_LIMIT, ANSWER_TIMEOUT)
            .await
    }
}

impl Group {
    fn is_of_use(&self) -> bool {
        let known = self.known.lock();
        let is_new = |known: &Known| known.at.elapsed() < MISSING_BELIEVED;
        known
            .as_ref()
            .is_some_and(|known| !known.resources.is_empty() || is_new(known))
    }
}

/// Returns whether the API server says that a path is not served.
///
/// A proxy in front of it may answer 404 for every path, so the status code alone does not show it.
fn is_not_served(status: &kube::core::Status) -> bool {
    status.code == 404 && (status.reason == "NotFound" || status.message.trim() == NO_PATH)
}

/// The body of the API server's answer for unknown paths.
pub(crate) const NO_PATH: &str = "404 page not found";

impl std::fmt::Debug for RestMapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RestMapper")
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use tokio::time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn groups_that_are_not_served_are_not_remembered_for_ever() {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let (status, text) = match request.uri().path() {
                "/apis/demo.dev/v1" => (200, DEMO),
                _ => (404, NO_PATH),
            };
            let answer = Response::builder().status(status);
            answer.body(http_body_util::Full::from(text))
        });
        let mapper = RestMapper::new(Client::new(service, "default"));
        let look_up = async |group: &str| mapper.kind(&Gvk::new(group, "v1", "Thing")).await;
        assert!(look_up("demo.dev").await.is_ok());
        for number in 0..1_000 {
            assert!(look_up(&format!("none-{number}.dev")).await.is_err());
            time::advance(Duration::from_millis(100)).await;
        }
        let groups = mapper.shared.groups.lock();
        assert!(groups.len() <= 12, "{}", groups.len());
        assert!(groups.contains_key("/apis/demo.dev/v1"));
    }

    const DEMO: &str = r#"{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "demo.dev/v1", "resources": [
        {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["list", "watch"]}]}"#;
}
