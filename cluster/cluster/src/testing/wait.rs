//! Waits for objects by watching them.

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Error, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::report;
use crate::cluster::Cluster;
use crate::journal::Journal;

/// The default time limit of waits: 30 s.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The number of requests of the journal that an error shows.
const REQUESTS: usize = 10;

/// The pause before the first retry, which doubles up to a maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// The time limit for reading events for the error of a wait.
const REPORT: Duration = Duration::from_secs(2);

/// The error of a wait: the object did not meet the condition in time.
///
/// Its debug form, which `unwrap` and tests show, is its text: how long the wait was and for what, the last
/// state of the object with its conditions, the last events about it, and the last requests.
#[derive(thiserror::Error)]
#[error("{text}")]
pub struct WaitError {
    text: String,
}

lariat_core::debug_as_description!(WaitError);

/// Waits until an object exists and meets a condition, and returns it.
///
/// ```
/// # use kube::{Api, api::DynamicObject};
/// # use lariat::cluster::{Cluster, testing::{namespace, wait_for}};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::for_test().await;
/// let namespaces = namespace("shop").api(&cluster.client());
/// let create = namespace("shop");
/// let client = cluster.client();
/// let active = wait_for(&namespaces, "shop", |namespace| namespace.data["status"]["phase"] == "Active");
/// let (active, created) = tokio::join!(active, create.create(&client));
/// assert_eq!(active?.metadata.uid, created?.metadata.uid);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The object does not meet it within [`TIMEOUT`]; the error shows its last state.
///
/// # Cancel safety
///
/// Dropping the future ends the watch.
pub async fn wait_for<K: Waitable>(
    api: &Api<K>,
    name: &str,
    condition: impl FnMut(&K) -> bool,
) -> Result<K, WaitError> {
    Wait::new(api, name)
        .until("it is as wanted", condition)
        .await
}

/// Waits until a condition in an object's status is `True`, and returns the object.
///
/// # Errors
///
/// The object does not meet it within [`TIMEOUT`]; the error shows its last state.
///
/// # Cancel safety
///
/// Dropping the future ends the watch.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::testing::{pod, wait_for_condition};
/// use lariat::cluster::{Cluster, Workloads};
///
/// let cluster = Cluster::builder().simulate_workloads(Workloads::default()).for_test().await;
/// let web = pod("web");
/// web.create(&cluster.client()).await?;
/// let ready = wait_for_condition(&web.api(&cluster.client()), "web", "Ready").await?;
/// assert_eq!(ready.data["status"]["phase"], "Running");
/// # Ok(()) }
/// ```
pub async fn wait_for_condition<K: Waitable>(
    api: &Api<K>,
    name: &str,
    condition: &str,
) -> Result<K, WaitError> {
    Wait::new(api, name).condition(condition).await
}

/// Waits until an object does not exist.
///
/// # Errors
///
/// It still exists after [`TIMEOUT`].
///
/// # Cancel safety
///
/// Dropping the future ends the watch.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::Cluster;
/// use lariat::cluster::testing::{namespace, wait_until_gone};
///
/// let cluster = Cluster::for_test().await;
/// let shop = namespace("shop");
/// let namespaces = shop.api(&cluster.client());
/// shop.create(&cluster.client()).await?;
/// namespaces.delete("shop", &Default::default()).await?;
/// wait_until_gone(&namespaces, "shop").await?;
/// # Ok(()) }
/// ```
pub async fn wait_until_gone<K: Waitable>(api: &Api<K>, name: &str) -> Result<(), WaitError> {
    Wait::new(api, name).gone().await
}

/// A type of objects to wait for: `Pod`, `DynamicObject`, derived custom kinds.
pub trait Waitable: Resource + Clone + Debug + DeserializeOwned + Serialize + 'static {}

impl<K: Resource + Clone + Debug + DeserializeOwned + Serialize + 'static> Waitable for K {}

/// A wait for one object, with options.
///
/// It lists the object by its name, and watches it from there; when the watch ends or fails it lists again.
/// So the condition is checked in every state that the API server sends, and the wait survives errors and
/// lost connections, the last of which is reported on a timeout.
///
/// ```
/// # use std::time::Duration;
/// # use lariat::cluster::{Cluster, testing::{Wait, pod}};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::for_test().await;
/// let web = pod("web").set("/metadata/finalizers", vec!["example.com/hold"]);
/// let pods = web.api(&cluster.client());
/// web.create(&cluster.client()).await?;
/// pods.delete("web", &Default::default()).await?;
///
/// // With the cluster's journal the error also reports the last requests.
/// let gone = cluster.wait(&pods, "web").timeout(Duration::from_secs(5)).gone().await;
/// let error = gone.expect_err("the finalizer holds it").to_string();
/// assert!(error.starts_with("waited 5s until pods default/web is gone; last seen:\n"));
/// assert!(error.contains("finalizers [\"example.com/hold\"]"));
/// assert!(error.contains("delete /api/v1/namespaces/default/pods/web"));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a wait does nothing until one of its methods is awaited"]
pub struct Wait<K: Clone> {
    api: Api<K>,
    name: String,
    timeout: Duration,
    journal: Option<Journal>,
}

/// The observations of a wait.
struct Seen<K> {
    present: bool,
    last: Option<K>,
    trouble: Option<String>,
}

impl Cluster {
    /// Creates a wait whose error reports the last requests to this cluster.
    pub fn wait<K: Waitable>(&self, api: &Api<K>, name: &str) -> Wait<K> {
        Wait {
            journal: Some(self.journal()),
            ..Wait::new(api, name)
        }
    }
}

impl<K: Waitable> Wait<K> {
    /// Creates a wait for an object.
    pub fn new(api: &Api<K>, name: &str) -> Self {
        Self {
            api: api.clone(),
            name: name.to_owned(),
            timeout: TIMEOUT,
            journal: None,
        }
    }

    /// Sets the timeout (default [`TIMEOUT`]).
    ///
    /// Zero fails unless the condition holds at once.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Waits until the object exists and meets a condition.
    ///
    /// `what` describes the condition in the error, such as `"it has a node"`.
    ///
    /// # Errors
    ///
    /// The object does not meet it within the timeout; the error shows its last state.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watch.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    /// use lariat::cluster::testing::{Wait, config_map};
    ///
    /// let cluster = Cluster::for_test().await;
    /// let settings = config_map("settings", &[("color", "red")]);
    /// settings.create(&cluster.client()).await?;
    /// let wait = Wait::new(&settings.api(&cluster.client()), "settings");
    /// let found = wait.until("its color is red", |each| each.data["data"]["color"] == "red").await?;
    /// assert_eq!(found.metadata.name.as_deref(), Some("settings"));
    /// # Ok(()) }
    /// ```
    pub async fn until(
        self,
        what: &str,
        mut condition: impl FnMut(&K) -> bool,
    ) -> Result<K, WaitError> {
        let title = format!("for {} until {what}", self.subject());
        let mut found = None;
        let is_done = |object: Option<&K>| {
            found = object.filter(|object| condition(object)).cloned();
            found.is_some()
        };
        self.watch(&title, is_done).await?;
        found.ok_or(WaitError { text: title })
    }

    /// Waits until a condition in the object's status is `True`.
    ///
    /// # Errors
    ///
    /// The object does not meet it within the timeout; the error shows its last state.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watch.
    pub async fn condition(self, condition: &str) -> Result<K, WaitError> {
        let what = format!("condition {condition} is True");
        self.until(&what, |object| is_true(object, condition)).await
    }

    /// Waits until the object is gone; a later one with the same name does not count.
    ///
    /// # Errors
    ///
    /// It still exists when the time is over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the watch.
    pub async fn gone(self) -> Result<(), WaitError> {
        let title = format!("until {} is gone", self.subject());
        let mut first = None;
        let is_gone = |object: Option<&K>| {
            let uid = object.map(|object| object.meta().uid.clone());
            // Another uid under the name means that the first object is gone.
            uid.is_none_or(|uid| *first.get_or_insert(uid.clone()) != uid)
        };
        self.watch(&title, is_gone).await
    }

    /// Returns the error of a wait for an object whose creation the server refused.
    pub(super) fn refused(&self, error: &Error) -> WaitError {
        let error = lariat_core::describe(error);
        WaitError {
            text: format!("{} was refused: {error}", self.subject()),
        }
    }

    async fn watch(
        &self,
        title: &str,
        mut done: impl FnMut(Option<&K>) -> bool,
    ) -> Result<(), WaitError> {
        let started = Instant::now();
        let mut seen = Seen {
            present: false,
            last: None,
            trouble: None,
        };
        if timeout(self.timeout, self.rounds(&mut seen, &mut done))
            .await
            .is_ok()
        {
            return Ok(());
        }
        let waited = started.elapsed();
        Err(self
            .failure(&format!("waited {waited:?} {title}"), seen)
            .await)
    }

    /// Lists and watches until the condition is met.
    async fn rounds(&self, seen: &mut Seen<K>, done: &mut impl FnMut(Option<&K>) -> bool) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.round(seen, done).await {
                Ok(ControlFlow::Break(())) => return,
                // That a watch ends is no failure.
                Ok(ControlFlow::Continue(())) => pause = FIRST_PAUSE,
                Err(error) => seen.trouble = Some(lariat_core::describe(&error)),
            }
            sleep(pause).await;
            pause = LAST_PAUSE.min(2 * pause);
        }
    }

    async fn round(
        &self,
        seen: &mut Seen<K>,
        done: &mut impl FnMut(Option<&K>) -> bool,
    ) -> Result<ControlFlow<()>, Error> {
        let field = format!("metadata.name={}", self.name);
        let list = self.api.list(&ListParams::default().fields(&field)).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        if seen.now(list.items.into_iter().next(), done) {
            return Ok(ControlFlow::Break(()));
        }
        let params = WatchParams::default().fields(&field);
        let mut events = std::pin::pin!(self.api.watch(&params, &version).await?);
        while let Some(event) = events.next().await {
            let done = match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    seen.now(Some(object), done)
                }
                WatchEvent::Deleted(object) => {
                    seen.last = Some(object);
                    seen.now(None, done)
                }
                WatchEvent::Bookmark(_) => false,
                WatchEvent::Error(status) => return Err(Error::Api(status)),
            };
            if done {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    async fn failure(&self, what: &str, seen: Seen<K>) -> WaitError {
        let object = seen.last.and_then(|last| serde_json::to_value(last).ok());
        let last = object.map(|object| report::object(&self.subject(), &object));
        let mut text = match (last, seen.present) {
            (Some(last), true) => format!("{what}; last seen:\n{last}"),
            (Some(last), false) => format!("{what}; it was deleted, and before that:\n{last}"),
            (None, _) => format!("{what}; it was never seen"),
        };
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                text.push_str(&format!("\n{title}:\n  {}", lines.join("\n  ")));
            }
        };
        section("trouble on the way", seen.trouble.into_iter().collect());
        // The requests for the report itself are not part of it.
        let requests = self.requests();
        if let Some(namespace) = self.api.namespace() {
            let client = self.api.clone().into_client();
            let events = timeout(REPORT, report::events(&client, namespace, &self.name)).await;
            section("events", events.unwrap_or_default());
        }
        section("last requests", requests);
        WaitError { text }
    }

    fn requests(&self) -> Vec<String> {
        let recorded = self.journal.as_ref().map(Journal::requests);
        let requests = recorded.unwrap_or_default();
        let last = &requests[requests.len().saturating_sub(REQUESTS)..];
        last.iter().map(report::request).collect()
    }

    /// Formats the object as `pods default/web`.
    fn subject(&self) -> String {
        let url = self.api.resource_url();
        let plural = url.rsplit('/').next().unwrap_or_default();
        match self.api.namespace() {
            Some(namespace) => format!("{plural} {namespace}/{}", self.name),
            None => format!("{plural} {}", self.name),
        }
    }
}

impl<K> Seen<K> {
    /// Keeps the present state, and returns whether it meets the condition.
    fn now(&mut self, object: Option<K>, done: &mut impl FnMut(Option<&K>) -> bool) -> bool {
        self.present = object.is_some();
        let is_done = done(object.as_ref());
        if object.is_some() {
            self.last = object;
        }
        is_done
    }
}

fn is_true(object: &impl Serialize, condition: &str) -> bool {
    let object = serde_json::to_value(object).unwrap_or_default();
    let conditions = object.pointer("/status/conditions");
    let list = conditions.and_then(|list| list.as_array());
    list.into_iter()
        .flatten()
        .any(|each| each["type"] == condition && each["status"] == "True")
}
