//! The mapper from kinds to resources, and its cache of discovery.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use kube::Client;
use lariat_core::{Gvk, ResourceKind, debug_as_description, describe};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{self, Instant};

use super::{aggregated, legacy};
use crate::requests::CountedClient;

/// Maps kinds to resources by the API server's discovery.
///
/// The first lookup of a core kind, and the first of any other kind, request all of them at once if the server supports
/// aggregated discovery. Further lookups request one group and version. Results are cached for ten minutes. A kind that
/// is missing in them is looked up again, at most once a second, so a CRD that was created meanwhile is found. Groups
/// are looked up separately: one that does not answer affects only its own kinds, and its previous results are used.
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
    pub(super) shared: Arc<Discovery>,
}

pub(super) struct Discovery {
    pub(super) client: CountedClient,
    /// By the path of group and version.
    known: Mutex<Groups>,
    /// Whether `/api` was requested with all groups.
    core: AsyncMutex<Asked>,
    /// Whether `/apis` was requested with all groups.
    named: AsyncMutex<Asked>,
}

/// A request for all groups; locked during the request, so that concurrent lookups cause one.
#[derive(Default)]
struct Asked {
    is_done: bool,
    /// When the last request failed.
    failed: Option<Instant>,
}

/// The known groups and versions, by path.
#[derive(Default)]
struct Groups {
    entries: HashMap<String, KnownGroup>,
    /// How many entries the last clean-up left.
    left: usize,
}

/// The results for a group and version; locked during a request.
type KnownGroup = Arc<AsyncMutex<Lookup>>;

/// The last results for a group and version.
#[derive(Default)]
struct Lookup {
    known: Option<Known>,
    /// When the last request failed, and how.
    failed: Option<(Instant, MapperError)>,
}

/// What a group and version serve.
#[derive(Clone)]
struct Known {
    resources: Arc<Vec<ResourceKind>>,
    at: Instant,
}

/// How long results are used.
const BELIEVED: Duration = Duration::from_secs(600);

/// How long a kind is considered missing.
const MISSING_BELIEVED: Duration = Duration::from_secs(1);

/// How long results are kept after their last use.
///
/// They are used if the group does not answer.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// The number of entries at which the first clean-up removes unused ones.
///
/// Without it, groups that are looked up and not served would stay for ever.
const CLEAR_AT: usize = 64;

/// The error of a lookup of a kind or resource.
#[derive(thiserror::Error)]
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
    /// The API server does not serve the resource.
    #[error("{resource} is not served by the API server under {api_path}")]
    UnknownResource {
        /// The path of group and version.
        api_path: String,
        /// The plural resource name.
        resource: String,
    },
    /// The request failed, or the API server refused it.
    #[error("cannot look up {api_path}")]
    Discovery {
        /// The path of group and version.
        api_path: String,
        /// The client's error.
        source: kube::Error,
    },
    /// The API server did not answer in time.
    #[error("cannot look up {api_path}: no answer from the API server within {after:?}")]
    Unanswered {
        /// The path of group and version.
        api_path: String,
        /// The time limit.
        after: Duration,
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
    let names: Vec<String> = served.iter().map(Gvk::to_string).collect();
    format!(
        "did you mean {}? If not, its CustomResourceDefinition is not installed",
        names.join(" or ")
    )
}

/// How many bytes a discovery document may have.
///
/// With a thousand CRDs the document of all groups has a few MiB.
pub(super) const DISCOVERY_LIMIT: usize = 64 * 1024 * 1024;

/// The timeout of an answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

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

    /// Copies the error of a request, for the lookups that waited for it.
    fn copy(&self) -> Self {
        match self {
            Self::UnknownKind { gvk, served } => Self::UnknownKind {
                gvk: gvk.clone(),
                served: served.clone(),
            },
            Self::UnknownResource { api_path, resource } => Self::UnknownResource {
                api_path: api_path.clone(),
                resource: resource.clone(),
            },
            Self::Unanswered { api_path, after } => Self::Unanswered {
                api_path: api_path.clone(),
                after: *after,
            },
            Self::Discovery { api_path, source } => Self::Discovery {
                api_path: api_path.clone(),
                source: match source {
                    kube::Error::Api(status) => kube::Error::Api(status.clone()),
                    // Other errors of kube cannot be copied; the text is all that is read of them.
                    source => kube::Error::Service(describe(source).into()),
                },
            },
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
                known: Mutex::default(),
                core: AsyncMutex::default(),
                named: AsyncMutex::default(),
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

    /// Returns kinds of the same name in other groups and versions.
    ///
    /// Only cached results and the aggregated discovery are searched; no group is looked up separately.
    async fn namesakes(&self, gvk: &Gvk) -> Vec<Gvk> {
        for root in ["/api/", "/apis/"] {
            self.ask_everything(root).await;
        }
        let entries: Vec<KnownGroup> = self.shared.known.lock().entries.values().cloned().collect();
        let mut namesakes = Vec::new();
        for entry in entries {
            // An entry that is being looked up is skipped, so that an error need not wait for other groups.
            let Ok(lookup) = entry.try_lock() else {
                continue;
            };
            let resources = lookup.known.iter().flat_map(|known| known.resources.iter());
            let same = resources.filter(|resource| resource.gvk().kind() == gvk.kind());
            namesakes.extend(same.map(|resource| resource.gvk().clone()));
        }
        namesakes.sort();
        namesakes.dedup();
        namesakes
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
        let search = |known: &Known| known.resources.iter().find(|r| matches(r)).cloned();
        self.ask_everything(api_path).await;
        let entry = self.entry(api_path);
        let asked = Instant::now();
        // Held during the request below, so that concurrent lookups of a group cause one request.
        let mut lookup = entry.lock().await;
        if let Some(known) = &lookup.known {
            let age = known.at.elapsed();
            let found = search(known);
            if age < MISSING_BELIEVED || (found.is_some() && age < BELIEVED) {
                return Ok(found);
            }
        }
        let failure = lookup.failed.as_ref().filter(|(at, _)| *at >= asked);
        let discovered = match failure {
            // The request that this lookup waited for. Others that wait would wait for one timeout after the other.
            Some((_, error)) => Err(error.copy()),
            None => self.discover(api_path).await,
        };
        let resources = match discovered {
            Ok(resources) => Arc::new(resources),
            Err(error) => {
                if failure.is_none() {
                    lookup.failed = Some((Instant::now(), error.copy()));
                }
                // Previous results are better than none.
                let known = lookup.known.as_ref().and_then(search);
                return known.map(Some).ok_or(error);
            }
        };
        let at = Instant::now();
        let fresh = Known { resources, at };
        let found = search(&fresh);
        *lookup = Lookup {
            known: Some(fresh),
            failed: None,
        };
        Ok(found)
    }

    /// Forgets the results for the path of a group and version (`/apis/apps/v1`).
    ///
    /// The next lookup sends a request. It is for a program that has just created a CRD. Handles of kinds that were
    /// found keep their resource.
    pub fn forget(&self, api_path: &str) {
        self.shared.known.lock().entries.remove(api_path);
    }

    fn entry(&self, api_path: &str) -> KnownGroup {
        self.shared.known.lock().entry(api_path)
    }

    /// Returns the number of entries, and its upper bound.
    pub(crate) fn known(&self) -> (usize, usize) {
        let known = self.shared.known.lock();
        (known.entries.len(), known.clear_at())
    }

    /// Requests all groups at once, unless that was done before.
    async fn ask_everything(&self, api_path: &str) {
        let is_named = api_path.starts_with("/apis/");
        let (root, asked) = if is_named {
            ("/apis", &self.shared.named)
        } else {
            ("/api", &self.shared.core)
        };
        let began = Instant::now();
        let mut asked = asked.lock().await;
        // A request that failed while this lookup waited for it is not repeated.
        if asked.is_done || asked.failed.is_some_and(|at| at >= began) {
            return;
        }
        match self.all_groups(root).await {
            Some(text) => {
                asked.is_done = true;
                let at = Instant::now();
                for (api_path, resources) in aggregated::read(&text) {
                    let resources = Arc::new(resources);
                    let entry = self.entry(&api_path);
                    entry.lock().await.known = Some(Known { resources, at });
                }
            }
            None => asked.failed = Some(Instant::now()),
        }
    }

    /// Requests all groups; empty if the server does not support that, and `None` if it is unavailable.
    async fn all_groups(&self, root: &str) -> Option<String> {
        let request = Request::get(root)
            .header(ACCEPT, aggregated::ACCEPTED)
            .body(Vec::new());
        let sent = self
            .shared
            .client
            .request_text(request.ok()?, DISCOVERY_LIMIT);
        match time::timeout(ANSWER_TIMEOUT, sent).await.ok()? {
            Ok(text) => Some(text),
            // A server that refuses has no aggregated discovery; one that is unavailable is asked again.
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                Some(String::new())
            }
            Err(_) => None,
        }
    }

    /// Requests the resources of a group and version; empty if it is not served.
    async fn discover(&self, api_path: &str) -> Result<Vec<ResourceKind>, MapperError> {
        let failed = |source| MapperError::Discovery {
            api_path: api_path.to_owned(),
            source,
        };
        let request = Request::get(api_path)
            .body(Vec::new())
            .map_err(|error| failed(kube::Error::HttpError(error)))?;
        let answer = time::timeout(
            ANSWER_TIMEOUT,
            self.shared.client.request_text(request, DISCOVERY_LIMIT),
        )
        .await
        .map_err(|_| MapperError::Unanswered {
            api_path: api_path.to_owned(),
            after: ANSWER_TIMEOUT,
        })?;
        let text = match answer {
            Err(kube::Error::Api(status)) if is_not_served(&status) => return Ok(Vec::new()),
            answer => answer.map_err(failed)?,
        };
        legacy::read(&text).map_err(|error| failed(kube::Error::SerdeError(error)))
    }
}

impl Groups {
    fn entry(&mut self, api_path: &str) -> KnownGroup {
        if let Some(known) = self.entries.get(api_path) {
            return Arc::clone(known);
        }
        // After each doubling, so that not every new entry costs a search of all entries.
        if self.entries.len() >= self.clear_at() {
            self.entries.retain(|_, entry| is_of_use(entry));
            self.left = self.entries.len();
        }
        let entry = KnownGroup::default();
        self.entries.insert(api_path.to_owned(), Arc::clone(&entry));
        entry
    }

    fn clear_at(&self) -> usize {
        CLEAR_AT.max(2 * self.left)
    }
}

/// Returns whether an entry is being looked up, or has results that may be used.
fn is_of_use(entry: &KnownGroup) -> bool {
    let Some(lookup) = entry
        .try_lock()
        .ok()
        .filter(|_| Arc::strong_count(entry) == 1)
    else {
        return true;
    };
    lookup.known.as_ref().is_some_and(|known| {
        let kept = if known.resources.is_empty() {
            MISSING_BELIEVED
        } else {
            KEPT
        };
        known.at.elapsed() < kept
    })
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
    use lariat_core::Scope;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn groups_that_are_not_served_are_not_remembered_for_ever() {
        let mut groups = Groups::default();
        let known = |kinds: &[&str]| {
            let resource = |kind: &&str| {
                ResourceKind::new(
                    Gvk::new("demo.dev", "v1", kind),
                    "things",
                    Scope::Namespaced,
                )
            };
            Known {
                resources: Arc::new(kinds.iter().map(resource).collect()),
                at: Instant::now(),
            }
        };
        groups.entry("/apis/demo.dev/v1").lock().await.known = Some(known(&["Thing"]));
        let waited_for = groups.entry("/apis/slow.dev/v1");
        for number in 0..10_000 {
            let entry = groups.entry(&format!("/apis/none-{number}.dev/v1"));
            // Every other one is never answered.
            entry.lock().await.known = (number % 2 == 0).then(|| known(&[]));
            time::advance(Duration::from_millis(100)).await;
        }
        assert!(groups.entries.len() <= CLEAR_AT, "{}", groups.entries.len());
        assert!(groups.entries.contains_key("/apis/demo.dev/v1"));
        assert!(Arc::ptr_eq(&waited_for, &groups.entry("/apis/slow.dev/v1")));
        time::advance(KEPT).await;
        for number in 0..CLEAR_AT {
            groups.entry(&format!("/apis/more-{number}.dev/v1"));
        }
        assert!(!groups.entries.contains_key("/apis/demo.dev/v1"));
    }
}
