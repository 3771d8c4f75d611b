//! What reading and writing objects can fail with.

use lariat_cache::{DecodeError, LoadError, MapperError};
use lariat_core::{Gvk, ObjectKey, debug_as_description};

use crate::secrets::without_values;

/// A read or a write that failed; it names the verb, the kind and the key.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// There is no such object.
    #[error("there is no {gvk} {key}")]
    NotFound {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The key has no namespace, and the kind is one of objects in namespaces.
    #[error("{gvk} {key:?} needs a namespace", key = key.as_str())]
    NoNamespace {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The kind is not served, and not waited for.
    #[error("the API server does not serve {gvk}; is its definition installed?")]
    NotServed {
        /// The kind.
        gvk: Gvk,
    },
    /// Discovery failed.
    #[error(transparent)]
    Mapper(#[from] MapperError),
    /// The content of an object is not cached, and could not be fetched.
    #[error(transparent)]
    Load(#[from] Box<LoadError>),
    /// A cached object does not fit the type.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The API server refused, or did not answer. What it says of a write of a Secret is left out.
    #[error("cannot {verb} {gvk} {key}")]
    Refused {
        /// What was tried.
        verb: &'static str,
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// Why.
        source: Box<kube::Error>,
    },
    /// The API server did it, but its answer does not fit the type.
    #[error("cannot read the answer to {verb} {gvk} {key}: {error}")]
    Unreadable {
        /// What was tried.
        verb: &'static str,
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// What does not fit, without what stands there.
        error: String,
    },
}

debug_as_description!(ApiError);

impl ApiError {
    pub(super) fn not_found(gvk: &Gvk, key: &ObjectKey) -> Self {
        let (gvk, key) = (gvk.clone(), key.clone());
        Self::NotFound { gvk, key }
    }

    pub(super) fn no_namespace(gvk: &Gvk, key: &ObjectKey) -> Self {
        let (gvk, key) = (gvk.clone(), key.clone());
        Self::NoNamespace { gvk, key }
    }

    pub(super) fn not_served(gvk: &Gvk) -> Self {
        Self::NotServed { gvk: gvk.clone() }
    }

    pub(crate) fn refused(
        verb: &'static str,
        gvk: &Gvk,
        key: &ObjectKey,
        source: kube::Error,
    ) -> Self {
        Self::Refused {
            verb,
            gvk: gvk.clone(),
            key: key.clone(),
            source: Box::new(without_values(verb, gvk, source)),
        }
    }

    pub(super) fn unreadable(
        verb: &'static str,
        gvk: &Gvk,
        key: &ObjectKey,
        error: String,
    ) -> Self {
        Self::Unreadable {
            verb,
            gvk: gvk.clone(),
            key: key.clone(),
            error,
        }
    }

    /// Returns whether there is no such object.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. }) || self.has_reason("NotFound")
    }

    /// Returns whether the object was in another state than the write said.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.has_reason("Conflict")
    }

    /// Returns whether the object exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.has_reason("AlreadyExists")
    }

    fn has_reason(&self, reason: &str) -> bool {
        match self {
            Self::Refused { source, .. } => match &**source {
                kube::Error::Api(status) => status.reason == reason,
                _ => false,
            },
            _ => false,
        }
    }
}
