//! The mapper from kinds to resources, and its cache of discovery.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use kube::Client;
use lariat_client::CountedClient;
use lariat_core::{Gvk, ResourceKind, debug_as_description, describe};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{self, Instant};

use super::aggregated::{self, Served};
use super::legacy;

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
    /// When `/api` was requested with all groups.
    core: AsyncMutex<Option<Asked>>,
    /// When `/apis` was requested with all groups.
    named: AsyncMutex<Option<Asked>>,
}

/// A request for all groups at once; locked during the request, so that concurrent lookups cause one.
struct Asked {
    at: Instant,
    is_answered: bool,
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
    resources: Arc<Vec<Served>>,
    at: Instant,
}

/// How long results are used.
const BELIEVED: Duration = Duration::from_secs(600);

/// How long a kind is considered missing.
const MISSING_BELIEVED: Duration = Duration::from_secs(1);

/// How long the versions are believed in which a missing kind is said to be served.
const NAMESAKES_BELIEVED: Duration = Duration::from_secs(60);

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
pub(super) const DISCOVERY_LIMIT: usize = 64 * 1024 * 1024;

/// Returns the versions of a kind among its namesakes.
fn in_group<'a>(gvk: &'a Gvk, served: &'a [Gvk]) -> impl Iterator<Item = &'a Gvk> {
    served.iter().filter(|other| other.group() == gvk.group())
}

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
            Self::NotWatchable { gvk, is_listable } => Self::NotWatchable {
                gvk: gvk.clone(),
                is_listable: *is_listable,
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

    /// Returns kinds of the same name in other groups and versions.
    ///
    /// Only cached results and the aggregated discovery are searched; no group is looked up separately.
    async fn namesakes(&self, gvk: &Gvk) -> Vec<Gvk> {
        for root in ["/api", "/apis"] {
            self.ask_everything(root, NAMESAKES_BELIEVED).await;
        }
        let entries: Vec<KnownGroup> = self.shared.known.lock().entries.values().cloned().collect();
        let mut namesakes = Vec::new();
        for entry in entries {
            // An entry that is being looked up is skipped, so that an error need not wait for other groups.
            let Ok(lookup) = entry.try_lock() else {
                continue;
            };
            let resources = lookup.known.iter().flat_map(|known| known.resources.iter());
            let kinds = resources.map(|served| served.resource.gvk());
            let same = kinds.filter(|other| other.kind() == gvk.kind() && *other != gvk);
            namesakes.extend(same.cloned());
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
        let root = if api_path.starts_with("/apis/") {
            "/apis"
        } else {
            "/api"
        };
        self.ask_everything(root, Duration::MAX).await;
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

    /// Requests all groups at once, unless that was done within some time.
    async fn ask_everything(&self, root: &'static str, believed: Duration) {
        let asked = if root == "/api" {
            &self.shared.core
        } else {
            &self.shared.named
        };
        let mut asked = asked.lock().await;
        let is_done = |asked: &Asked| {
            // Lookups that waited for a request which was not answered must not each wait for another one.
            let believed = if asked.is_answered {
                believed
            } else {
                MISSING_BELIEVED
            };
            asked.at.elapsed() < believed
        };
        if asked.as_ref().is_some_and(is_done) {
            return;
        }
        let is_answered = self.read_everything(root).await;
        let at = Instant::now();
        *asked = Some(Asked { at, is_answered });
    }

    /// Requests all groups at once; returns whether the server has answered, if only to refuse.
    async fn read_everything(&self, root: &'static str) -> bool {
        let request = Request::get(root)
            .header(ACCEPT, aggregated::ACCEPTED)
            .body(Vec::new());
        let Ok(request) = request else { return true };
        let sent = self.shared.client.request_text(request, DISCOVERY_LIMIT);
        let answer = time::timeout(ANSWER_TIMEOUT, sent).await;
        let text = match answer {
            Ok(Ok(text)) => text,
            // A server that refuses has no aggregated discovery; one that is unavailable is asked again.
            Ok(Err(kube::Error::Api(status))) => {
                return status.code < 500 && status.code != 429;
            }
            _ => return false,
        };
        // A server without aggregated discovery answers with another document.
        let Some(paths) = aggregated::served_kinds(&text) else {
            return true;
        };
        self.shared.known.lock().retain(root, &paths);
        let at = Instant::now();
        for (api_path, resources) in paths {
            // A version whose server did not answer the aggregator is looked up separately.
            let Some(resources) = resources.map(Arc::new) else {
                continue;
            };
            let entry = self.entry(&api_path);
            entry.lock().await.known = Some(Known { resources, at });
        }
        true
    }

    /// Requests the resources of a group and version; empty if it is not served.
    async fn discover(&self, api_path: &str) -> Result<Vec<Served>, MapperError> {
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
        legacy::served_kinds(&text).map_err(|error| failed(kube::Error::SerdeError(error)))
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

    /// Removes the paths below a root that a list of all of them does not contain.
    fn retain(&mut self, root: &str, paths: &aggregated::Paths) {
        let is_listed = |path: &String| paths.iter().any(|(listed, _)| listed == path);
        let is_below = |path: &str| {
            path.strip_prefix(root)
                .is_some_and(|it| it.starts_with('/'))
        };
        self.entries
            .retain(|path, _| !is_below(path) || is_listed(path));
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
                let gvk = Gvk::new("demo.dev", "v1", kind);
                Served::new(ResourceKind::new(gvk, "things", Scope::Namespaced), &[])
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
