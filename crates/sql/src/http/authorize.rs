//! Authorization: what users may see, by reviews of the API server.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::RestMapper;
use lariat_core::{Gvk, ResourceKind, Scope};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::VisibleError;
use crate::access::{Access, AccessReviews, User, Verb};
use crate::cache::SqlKind;
use crate::query::{Query, field};
use crate::revision::Revision;
use crate::schema::{NAME, NAMESPACE};

/// How long the list of a kind's namespaces is used after the kind has changed.
const FRESH: Duration = Duration::from_secs(1);

/// The largest number of namespaces in a query that are reviewed individually.
///
/// For a query that names more, all namespaces of the kind are reviewed.
const MOST_NAMED: usize = 64;

/// Determines by reviews what users may see.
pub(super) struct Authorizer {
    reviews: AccessReviews,
    mapper: RestMapper,
    namespaces: Mutex<HashMap<Gvk, Known>>,
}

/// The namespaces in which a kind has objects.
#[derive(Clone)]
struct Known {
    names: Arc<[String]>,
    at: Revision,
    until: Instant,
}

impl Authorizer {
    pub(super) fn new(reviews: AccessReviews) -> Self {
        Self {
            mapper: RestMapper::new(reviews.client()),
            reviews,
            namespaces: Mutex::default(),
        }
    }

    /// Returns what a user may see of a kind, at least in the namespaces of a query.
    pub(super) async fn access(
        &self,
        user: &User,
        kind: &SqlKind,
        query: &Query,
    ) -> Result<Access, VisibleError> {
        let gvk = kind.schema().gvk();
        let (all, resource) = self.everywhere(user, kind).await?;
        let is_namespace = *gvk == of_namespaces();
        if all.is_everything() || (resource.scope() == Scope::Cluster && !is_namespace) {
            return Ok(all);
        }
        // Users who cannot list namespaces may still get theirs one by one.
        let verb = if is_namespace { Verb::Get } else { Verb::List };
        let named = query
            .named_namespaces()
            .filter(|named| named.len() <= MOST_NAMED);
        let access = match named {
            Some(named) => self.reviews.of_user(user, verb, &resource, named).await?,
            None => {
                let known = self.namespaces(kind, query.at_least).await?;
                let names = known.iter().cloned();
                self.reviews.of_user(user, verb, &resource, names).await?
            }
        };
        Ok(access)
    }

    /// Returns the access of a user in all namespaces, and the resource of the kind.
    pub(super) async fn everywhere(
        &self,
        user: &User,
        kind: &SqlKind,
    ) -> Result<(Access, ResourceKind), VisibleError> {
        let gvk = kind.schema().gvk();
        let resource = self.mapper.kind(gvk).await.map_err(|error| {
            let error = lariat_core::describe(&error);
            tracing::warn!(kind = %gvk, error, "the access of users cannot be reviewed");
            VisibleError::new("the kind cannot be looked up; the log of the program says why")
        })?;
        let nowhere: [String; 0] = [];
        let all = self.reviews.of_user(user, Verb::List, &resource, nowhere);
        Ok((all.await?, resource))
    }

    /// Returns the namespaces in which a kind has objects.
    ///
    /// For the kind `Namespace` these are all namespaces. They are those of the revision that a query waits for, or
    /// later ones.
    async fn namespaces(
        &self,
        kind: &SqlKind,
        at_least: Option<Revision>,
    ) -> Result<Arc<[String]>, VisibleError> {
        let gvk = kind.schema().gvk();
        let known = self.namespaces.lock().get(gvk).cloned();
        if let Some(known) = known
            // In a kind that changes all the time the list may be a second old, instead of being counted for each
            // request.
            && (known.at == kind.revision() || Instant::now() < known.until)
            && at_least.is_none_or(|at_least| at_least.version() <= known.at.version())
        {
            return Ok(known.names);
        }
        let by = if *gvk == of_namespaces() {
            NAME
        } else {
            NAMESPACE
        };
        // Before the query, so that the list is never used longer than `FRESH` after its state.
        let asked = Instant::now();
        let mut query = Query::new().summarize(field(by)).only_counts();
        query.at_least = at_least;
        let answer = kind.query(&query).await.map_err(|error| {
            // Not sent to the client: the error may contain names of files and servers.
            let error = lariat_core::describe(&error);
            tracing::warn!(kind = %gvk, error, "the access of users cannot be reviewed");
            VisibleError::new("the cache cannot be read; the log of the program says why")
        })?;
        let counts = answer.summaries.into_iter().flatten();
        let known = Known {
            names: counts.map(|count| count.value).collect(),
            at: answer.revision,
            until: asked + FRESH,
        };
        let names = Arc::clone(&known.names);
        self.namespaces.lock().insert(gvk.clone(), known);
        Ok(names)
    }
}

/// The kind whose objects are namespaces.
pub(super) fn of_namespaces() -> Gvk {
    Gvk::new("", "v1", "Namespace")
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer")
            .field("reviews", &self.reviews)
            .finish_non_exhaustive()
    }
}
