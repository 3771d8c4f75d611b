//! Visibility: what a user may see of a kind.
//!
//! Routes read objects only through a [`View`], the part of a kind that the user may see.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::BoxFuture;
use lariat_core::{Gvk, ObjectKey};

use super::authorize::Authorizer;
use super::bytes::AnswerBytes;
use super::error::VisibleError;
use super::status::Refusal;
use crate::access::{Access, User};
use crate::cache::{FoundObject, QueryResult, SqlError, SqlKind};
use crate::query::Query;
use crate::revision::Revision;
use crate::watch::{Watch, WatchError};

/// The number of objects with equal names that are read at a time to find one.
const SAME_NAMES: u64 = 16;

/// A kind as a user may see it.
#[derive(Debug)]
pub(super) struct View {
    /// Restricted to the user's access.
    kind: SqlKind,
    access: Access,
}

impl View {
    pub(super) fn new(kind: &SqlKind, access: Access) -> Self {
        let kind = kind.restricted(access.clone());
        Self { kind, access }
    }

    /// Returns the associated kinds that a query refers to.
    pub(super) fn others(&self, query: &Query) -> BTreeSet<Gvk> {
        let known = self.kind.schema().associations();
        let names = query.associations();
        // A name that the kind does not know is refused by the query itself.
        let others = names.filter_map(|name| known.iter().find(|known| known.name() == name));
        others.map(|other| other.kind().clone()).collect()
    }

    /// Allows queries by associated objects of another kind that the user may see.
    pub(super) fn with_other(mut self, kind: &Gvk, access: Access) -> Self {
        self.kind = self.kind.restricted_associated(kind, access);
        self
    }

    pub(super) fn kind(&self) -> &Gvk {
        self.kind.schema().gvk()
    }

    /// Returns whether the kind is encrypted.
    pub(super) fn is_sealed(&self) -> bool {
        self.kind.is_sealed()
    }

    /// Returns the revision of the kind.
    pub(super) fn revision(&self) -> Revision {
        self.kind.revision()
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    /// Answers a query about the visible objects, within the limits on bytes.
    pub(super) async fn query(
        &self,
        query: &Query,
        bytes: &Arc<AnswerBytes>,
    ) -> Result<QueryResult, Refusal> {
        let answer = self.kind.query_within(query, Some(bytes.limit())).await;
        answer.map_err(|error| match error {
            SqlError::NoRoom { .. } => bytes.refusal().unwrap_or_else(|| error.into()),
            error => error.into(),
        })
    }

    /// Finds the object of a key among those that a query selects.
    ///
    /// Names that are equal in natural order may differ, so there may be many; a few are read at a time.
    pub(super) async fn find(
        &self,
        query: Query,
        key: &ObjectKey,
        bytes: &Arc<AnswerBytes>,
    ) -> Result<Option<FoundObject>, Refusal> {
        let mut query = query.limit(SAME_NAMES);
        loop {
            let answer = self.query(&query, bytes).await?;
            let mut found = answer.objects.into_iter();
            let found = found.find(|found| found.key == *key);
            match answer.next {
                Some(next) if found.is_none() => query = query.after(&next),
                _ => return Ok(found),
            }
        }
    }

    /// Watches the visible objects.
    pub(super) fn watch(&self, query: &Query, since: Revision) -> Result<Watch, WatchError> {
        self.kind.watch(query, Some(since))
    }
}

/// How the service determines what a user may see of a kind.
#[derive(Clone)]
pub(super) enum Sight {
    Function(Arc<Look>),
    Reviews(Arc<Authorizer>),
}

type Look = dyn Fn(User, Gvk) -> BoxFuture<'static, Result<Access, VisibleError>> + Send + Sync;

impl Sight {
    pub(super) fn function<F, Fut>(look: F) -> Self
    where
        F: Fn(User, Gvk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Access, VisibleError>> + Send + 'static,
    {
        Self::Function(Arc::new(move |user, kind| Box::pin(look(user, kind))))
    }

    /// Returns what a user may see, at least in the namespaces of a query.
    pub(super) async fn look(
        &self,
        user: &User,
        kind: &SqlKind,
        query: &Query,
    ) -> Result<Access, VisibleError> {
        match self {
            Self::Function(look) => look(user.clone(), kind.schema().gvk().clone()).await,
            Self::Reviews(reviews) => reviews.access(user, kind, query).await,
        }
    }

    /// Returns whether a user may see all objects of a kind.
    ///
    /// It does not wait for the cache.
    pub(super) async fn sees_all(&self, user: &User, kind: &SqlKind) -> Result<bool, VisibleError> {
        let access = match self {
            Self::Function(look) => look(user.clone(), kind.schema().gvk().clone()).await?,
            Self::Reviews(reviews) => reviews.everywhere(user, kind).await?.0,
        };
        Ok(access.is_everything())
    }
}
