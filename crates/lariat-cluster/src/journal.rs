//! The record of requests, for tests that count them.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::faults::Action;

/// One request the cluster received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The Kubernetes verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or
    /// `deletecollection`; the HTTP method in lower case for what is not about objects.
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
    /// The faults that met it, in order; none for most requests.
    pub faults: Vec<Action>,
}

/// The requests a cluster received, oldest first; a clone is the same journal.
///
/// It keeps the last [`CAPACITY`](Self::CAPACITY) requests.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    requests: Arc<Mutex<VecDeque<Request>>>,
}

impl Journal {
    /// How many requests are kept.
    pub const CAPACITY: usize = 100_000;

    pub(crate) fn record(&self, request: Request) {
        let mut requests = self.requests.lock();
        if requests.len() == Self::CAPACITY {
            requests.pop_front();
        }
        requests.push_back(request);
    }

    /// Returns all requests.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().iter().cloned().collect()
    }

    /// Counts the requests with a verb about a resource, such as `("watch", "pods")`.
    #[must_use]
    pub fn count(&self, verb: &str, resource: &str) -> usize {
        let requests = self.requests.lock();
        requests
            .iter()
            .filter(|each| each.verb == verb && each.resource == resource)
            .count()
    }

    /// Forgets all requests.
    pub fn clear(&self) {
        self.requests.lock().clear();
    }
}
