//! What a user may see of a kind.
//!
//! This is the one place where users meet objects: routes have no kind to ask, only the [`View`] of it that a user has.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::UserInfo;
use lariat_core::{Gvk, ObjectKey};

use crate::cache::{Answer, SqlError, SqlKind};
use crate::query::{Query, field};
use crate::revision::Revision;
use crate::schema::NAMESPACE;
use crate::watch::{Watch, WatchError};

/// What a user may see of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Visible {
    /// No object (default).
    #[default]
    Nothing,
    /// The objects in these namespaces, and none that has no namespace.
    Namespaces(BTreeSet<String>),
    /// All objects.
    Everything,
}

impl Visible {
    /// Allows the objects in these namespaces; none of them is nothing.
    #[must_use]
    pub fn namespaces(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        if names.is_empty() {
            return Self::Nothing;
        }
        Self::Namespaces(names)
    }

    pub(super) fn is_nothing(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Namespaces(names) => names.is_empty(),
            Self::Everything => false,
        }
    }

    /// Returns whether an object may be seen.
    #[must_use]
    pub fn allows(&self, key: &ObjectKey) -> bool {
        match self {
            Self::Nothing => false,
            Self::Namespaces(names) => key.namespace().is_some_and(|name| names.contains(name)),
            Self::Everything => true,
        }
    }

    /// Makes a query find only what may be seen.
    fn restrict(&self, query: Query) -> Query {
        match self {
            Self::Nothing => query.filter(field(NAMESPACE).is_in([""; 0])),
            Self::Namespaces(names) => query.filter(field(NAMESPACE).is_in(names)),
            Self::Everything => query,
        }
    }

    /// Returns a number that differs between those who may see different objects.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// A kind as a user may see it.
#[derive(Debug)]
pub(super) struct View<'a> {
    kind: &'a SqlKind,
    visible: Visible,
}

impl<'a> View<'a> {
    pub(super) fn new(kind: &'a SqlKind, visible: Visible) -> Self {
        Self { kind, visible }
    }

    pub(super) fn kind(&self) -> &Gvk {
        self.kind.schema().gvk()
    }

    /// Returns up to where the kind is written.
    pub(super) fn revision(&self) -> Revision {
        self.kind.revision()
    }

    pub(super) fn visible(&self) -> &Visible {
        &self.visible
    }

    /// Answers a query about what may be seen.
    pub(super) async fn query(&self, query: Query) -> Result<Answer, SqlError> {
        self.kind.query(&self.visible.restrict(query)).await
    }

    /// Watches what may be seen.
    pub(super) fn watch(&self, query: Query, since: Revision) -> Result<Watch, WatchError> {
        self.kind.watch(&self.visible.restrict(query), Some(since))
    }
}

/// It is not known what a user may see; nothing is shown then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what the user may see is not known: {0}")]
pub struct VisibleError(String);

impl VisibleError {
    /// Makes an error that a client reads: it answers 503 with this reason.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// A function that finds out what a user may see of a kind.
#[derive(Clone)]
pub(super) struct Sight(Arc<Look>);

type Look =
    dyn Fn(Arc<UserInfo>, Gvk) -> BoxFuture<'static, Result<Visible, VisibleError>> + Send + Sync;

impl Sight {
    pub(super) fn new<F, Fut>(look: F) -> Self
    where
        F: Fn(Arc<UserInfo>, Gvk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Visible, VisibleError>> + Send + 'static,
    {
        Self(Arc::new(move |user, kind| Box::pin(look(user, kind))))
    }

    pub(super) async fn look(
        &self,
        user: &Arc<UserInfo>,
        kind: &Gvk,
    ) -> Result<Visible, VisibleError> {
        (self.0)(Arc::clone(user), kind.clone()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_and_what_is_found_agree() {
        let here = ObjectKey::namespaced("here", "a");
        let there = ObjectKey::namespaced("there", "a");
        let cluster = ObjectKey::cluster("here");
        let check = |visible: &Visible| [&here, &there, &cluster].map(|key| visible.allows(key));
        assert_eq!(check(&Visible::Everything), [true, true, true]);
        assert_eq!(check(&Visible::namespaces(["here"])), [true, false, false]);
        assert_eq!(check(&Visible::Nothing), [false, false, false]);
        assert!(Visible::namespaces([""; 0]).is_nothing());
        assert!(Visible::Namespaces(BTreeSet::new()).is_nothing());
        let restricted = |visible: &Visible| visible.restrict(Query::new()).to_url();
        assert_eq!(restricted(&Visible::Everything), "");
        let one = restricted(&Visible::namespaces(["here"]));
        assert_eq!(one, "filter=metadata.namespace+in+%28here%29");
        assert_eq!(
            restricted(&Visible::Nothing),
            "filter=metadata.namespace+in+%28%29"
        );
    }
}
