//! The requests that were recorded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::select::Selection;
use crate::fault::Action;

/// One request the cluster received.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::{Cluster, faults::StatusCode};
///
/// let cluster = Cluster::builder().start().await?;
/// cluster.client().apiserver_version().await?;
/// let requests = cluster.journal().requests();
/// assert_eq!((&*requests[0].verb, &*requests[0].path), ("get", "/version"));
/// assert_eq!(requests[0].code, Some(StatusCode::OK));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The number of the request, counted from 0.
    pub number: u64,
    /// The time of its arrival, on tokio's clock since the start of the cluster.
    pub at: Duration,
    /// The Kubernetes verb, such as `get` or `deletecollection`.
    ///
    /// The others are `list`, `watch`, `create`, `update`, `patch` and `delete`. A request that is not about objects
    /// has the HTTP method in lower case.
    pub verb: String,
    /// The group of the resource, empty for the core group.
    pub group: String,
    /// The plural name of the resource; empty for what is not about objects.
    pub resource: String,
    /// The subresource, if any.
    pub subresource: Option<String>,
    /// The namespace in the path.
    pub namespace: Option<String>,
    /// The name in the path.
    pub name: Option<String>,
    /// The path.
    pub path: String,
    /// The query.
    pub query: String,
    /// The client's `User-Agent`.
    pub user_agent: String,
    /// The name of the user; empty before authentication, and if authentication failed.
    pub user: String,
    /// The status code of the answer; `None` while there is none.
    pub code: Option<StatusCode>,
    /// The time until the response, or the watch, began; `None` before that.
    pub took: Option<Duration>,
    /// Whether the client of this watch was cut off because it read nothing.
    ///
    /// See [`ClusterBuilder::write_timeout`](crate::ClusterBuilder::write_timeout).
    pub cut_off: bool,
    /// The audit annotations that admission added, in order.
    pub audit: Vec<(String, String)>,
    /// The faults that applied to it, in order; none for most requests.
    pub faults: Vec<Action>,
}

/// The requests a cluster received, oldest first; clones share the journal.
///
/// It keeps the last [`CAPACITY`](Self::CAPACITY) requests, or as many as the
/// [builder](crate::ClusterBuilder::journal) sets. A request is recorded when it arrives; its code follows when it is
/// answered. Requests to the [admin endpoint](crate::ClusterBuilder::admin) are not recorded.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_openapi::api::core::v1::Namespace;
/// use kube::Api;
/// use lariat::cluster::Cluster;
///
/// let cluster = Cluster::builder().start().await?;
/// let namespaces: Api<Namespace> = Api::all(cluster.client());
/// namespaces.list(&Default::default()).await?;
/// let lists = cluster.journal().select().verb("list").resource("namespaces");
/// lists.assert_count(1);
/// assert_eq!(lists.requests()[0].path, "/api/v1/namespaces");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Journal {
    pub(super) entries: Arc<Mutex<Entries>>,
    started: Instant,
    capacity: usize,
}

#[derive(Debug, Default)]
pub(super) struct Entries {
    requests: VecDeque<RecordedRequest>,
    /// The place of the first of them among all there ever were.
    first: u64,
}

/// A position in a journal, between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub(super) u64);

impl Journal {
    /// The number of requests that are kept by default.
    pub const CAPACITY: usize = 100_000;

    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: Arc::default(),
            started: Instant::now(),
            capacity,
        }
    }

    /// Records a request, and returns its place.
    pub(crate) fn record(&self, mut request: RecordedRequest) -> Mark {
        let mut entries = self.entries.lock();
        // Under the lock, so that times rise in the order of the requests, which `busiest` relies on.
        request.at = self.started.elapsed();
        request.number = entries.end();
        entries.requests.push_back(request);
        if entries.requests.len() > self.capacity {
            entries.requests.pop_front();
            // Marks count from the first request there ever was, so they stay valid.
            entries.first += 1;
        }
        Mark(entries.end() - 1)
    }

    /// Records the status code of the answer, unless the request is forgotten.
    pub(crate) fn answered(&self, request: Mark, code: StatusCode) {
        let now = self.started.elapsed();
        if let Some(request) = self.entries.lock().get_mut(request) {
            request.code = Some(code);
            request.took = Some(now.saturating_sub(request.at));
        }
    }

    /// Notes that the client of a watch was cut off, unless the request is forgotten.
    pub(crate) fn cut_off(&self, request: Mark) {
        if let Some(request) = self.entries.lock().get_mut(request) {
            request.cut_off = true;
        }
    }

    /// Records an audit annotation of a request, unless it is forgotten.
    pub(crate) fn annotate(&self, request: Mark, key: String, value: String) {
        if let Some(request) = self.entries.lock().get_mut(request) {
            request.audit.push((key, value));
        }
    }

    /// Records the user of a request, unless it is forgotten.
    pub(crate) fn sent_by(&self, request: Mark, user: &str) {
        if let Some(request) = self.entries.lock().get_mut(request) {
            user.clone_into(&mut request.user);
        }
    }

    /// Returns all requests.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.select().requests()
    }

    /// Returns the last requests, `most` at most, oldest first.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// cluster.client().list_core_api_versions().await?;
    /// cluster.client().apiserver_version().await?;
    /// assert_eq!(cluster.journal().last(1)[0].path, "/version");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn last(&self, most: usize) -> Vec<RecordedRequest> {
        let entries = self.entries.lock();
        let skipped = entries.requests.len().saturating_sub(most);
        entries.requests.iter().skip(skipped).cloned().collect()
    }

    /// Returns the number of requests since the start, dropped ones included.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.entries.lock().end()
    }

    /// Returns the largest number of requests that it keeps.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the current time on the clock of [`RecordedRequest::at`].
    #[must_use]
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts the requests with a verb about a resource, such as `("watch", "pods")`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kube::Api;
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let namespaces: Api<Namespace> = Api::all(cluster.client());
    /// namespaces.get("default").await?;
    /// assert_eq!(cluster.journal().count("get", "namespaces"), 1);
    /// assert_eq!(cluster.journal().count("list", "namespaces"), 0);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        self.select().verb(verb).resource(resource).count()
    }

    /// Returns a selection of all requests, to be narrowed.
    pub fn select(&self) -> Selection {
        Selection::of(self.clone())
    }

    /// Returns the current position, for selections of later requests.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kube::Api;
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let namespaces: Api<Namespace> = Api::all(cluster.client());
    /// namespaces.get("default").await?;
    /// let mark = cluster.journal().mark();
    /// namespaces.get("kube-system").await?;
    /// assert_eq!(cluster.journal().select().since(mark).count(), 1);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.entries.lock().end())
    }

    /// Drops all requests and frees their memory. Marks stay valid.
    pub fn clear(&self) {
        let mut entries = self.entries.lock();
        entries.first = entries.end();
        // A deque that is only cleared would keep its memory.
        entries.requests = VecDeque::new();
    }
}

impl Entries {
    /// Returns the place of the next request.
    fn end(&self) -> u64 {
        self.first + self.requests.len() as u64
    }

    fn get_mut(&mut self, request: Mark) -> Option<&mut RecordedRequest> {
        let behind_first = request.0.checked_sub(self.first)?;
        self.requests.get_mut(usize::try_from(behind_first).ok()?)
    }

    /// Iterates over the requests after a mark.
    pub(super) fn since(&self, mark: Mark) -> impl Iterator<Item = &RecordedRequest> {
        let skipped = mark.0.saturating_sub(self.first);
        self.requests
            .iter()
            .skip(usize::try_from(skipped).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_request_that_waits_for_the_journal_has_the_time_at_which_it_is_recorded() {
        let journal = Journal::new(10);
        let entries = journal.entries.lock();
        let (begin, begun) = mpsc::channel();
        let recorder = journal.clone();
        let recording = thread::spawn(move || {
            begin.send(()).expect("the test waits for this");
            recorder.record(RecordedRequest::default());
            drop(begin);
        });
        begun.recv().expect("the thread has begun");
        // Nothing is sent any more: it is enough time for the thread to reach the lock.
        let _ = begun.recv_timeout(Duration::from_millis(50));
        let released = journal.now();
        drop(entries);
        recording.join().expect("the request is recorded");
        let at = journal.requests()[0].at;
        assert!(at >= released, "{at:?} < {released:?}");
    }
}
