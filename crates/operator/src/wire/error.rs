//! The error of reading and writing objects.

use std::time::Duration;

use kube::core::Status;
use lariat_cache::{DecodeError, LoadError, MapperError, Phase};
use lariat_client::is_missing;
use lariat_core::{Gvk, ObjectKey, debug_as_description, not_a_name};

use super::secrets::without_values;
use super::sender::status_of;

/// A read or write failed. The `Display` names the verb, the kind and the key.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// The object does not exist.
    #[error("there is no {gvk} {key}")]
    NotFound {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The key has no namespace, but the kind is namespaced.
    #[error("{gvk} {key:?} needs a namespace", key = key.as_str())]
    NoNamespace {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The name or namespace is invalid, so the object cannot exist; nothing was sent.
    #[error("{gvk} {key:?} cannot exist: its {what} {reason}", key = key.as_str())]
    Unnameable {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// `name` or `namespace`.
        what: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The cache did not sync in time; a retry may succeed.
    #[error(
        "cannot read {gvk}: its cache did not sync within {after:?} ({phase}); {}",
        reason.as_deref().unwrap_or("no answer so far")
    )]
    NotSynced {
        /// The kind.
        gvk: Gvk,
        /// The time limit of reads.
        ///
        /// See [`CachedApi::with_sync_timeout`](crate::CachedApi::with_sync_timeout).
        after: Duration,
        /// The phase of the informer.
        phase: Phase,
        /// The last error of the informer, if any, such as a forbidden list.
        reason: Option<String>,
    },
    /// The kind is not served, and the factory does not wait for it.
    #[error("the API server does not serve {gvk}; is its CRD installed and established?")]
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
    /// A cached object does not decode as the requested type.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The request failed.
    ///
    /// If a Secret was sent, the message of the API server is left out.
    #[error("cannot {verb} {gvk} {key}")]
    Refused {
        /// The verb of the request.
        verb: &'static str,
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The error.
        source: Box<kube::Error>,
    },
    /// The function that should change the object failed.
    #[error("the function that changes {gvk} {key} failed")]
    Function {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The error of the function.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The function has changed the key of the object; nothing was sent.
    #[error("a change of {gvk} {key} cannot rename it to {name}; create another object")]
    Renamed {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The key after the function.
        name: ObjectKey,
    },
    /// The API server answered with another object.
    #[error("the answer to {verb} {gvk} {key} is another object: {answered}")]
    Another {
        /// The verb of the request.
        verb: &'static str,
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The key of the answer.
        answered: ObjectKey,
    },
    /// The request was executed, but its answer does not decode.
    #[error("cannot read the answer to {verb} {gvk} {key}: {error}")]
    Unreadable {
        /// The verb of the request.
        verb: &'static str,
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The error of the decoder, without values.
        error: String,
    },
}

debug_as_description!(ApiError);

impl ApiError {
    pub(crate) fn not_found(gvk: &Gvk, key: &ObjectKey) -> Self {
        let (gvk, key) = (gvk.clone(), key.clone());
        Self::NotFound { gvk, key }
    }

    pub(crate) fn no_namespace(gvk: &Gvk, key: &ObjectKey) -> Self {
        let (gvk, key) = (gvk.clone(), key.clone());
        Self::NoNamespace { gvk, key }
    }

    pub(crate) fn not_served(gvk: &Gvk) -> Self {
        Self::NotServed { gvk: gvk.clone() }
    }

    pub(crate) fn another(
        verb: &'static str,
        gvk: &Gvk,
        key: &ObjectKey,
        answered: &ObjectKey,
    ) -> Self {
        Self::Another {
            verb,
            gvk: gvk.clone(),
            key: key.clone(),
            answered: answered.clone(),
        }
    }

    /// Returns the error of an object whose name would be generated.
    pub(crate) fn no_name(gvk: &Gvk, key: &ObjectKey) -> Self {
        Self::Unnameable {
            gvk: gvk.clone(),
            key: key.clone(),
            what: "name",
            reason: "is generated, so each call would create another object",
        }
    }

    pub(crate) fn function(
        gvk: &Gvk,
        key: &ObjectKey,
        source: Box<dyn std::error::Error + Send + Sync>,
    ) -> Self {
        let (gvk, key) = (gvk.clone(), key.clone());
        Self::Function { gvk, key, source }
    }

    pub(crate) fn renamed(gvk: &Gvk, key: &ObjectKey, name: &ObjectKey) -> Self {
        let (gvk, key, name) = (gvk.clone(), key.clone(), name.clone());
        Self::Renamed { gvk, key, name }
    }

    /// Returns the error of a key with an invalid name.
    pub(crate) fn of_name(gvk: &Gvk, key: &ObjectKey) -> Option<Self> {
        Self::unnameable(gvk, key, "name", key.name())
    }

    /// Returns the error of a key with an invalid namespace.
    pub(crate) fn of_namespace(gvk: &Gvk, key: &ObjectKey) -> Option<Self> {
        Self::unnameable(gvk, key, "namespace", key.namespace()?)
    }

    fn unnameable(gvk: &Gvk, key: &ObjectKey, what: &'static str, text: &str) -> Option<Self> {
        not_a_name(text).map(|reason| Self::Unnameable {
            gvk: gvk.clone(),
            key: key.clone(),
            what,
            reason,
        })
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
            // The message of the API server may quote values of a Secret.
            source: Box::new(without_values(verb, gvk, source)),
        }
    }

    pub(crate) fn unreadable(
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

    /// Returns whether the object or its namespace does not exist.
    ///
    /// An API server that does not serve the kind answers 404 too, also during its start, before it has loaded its
    /// CRDs. That is another error: the object may exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::NotFound { .. } => true,
            Self::Refused { source, .. } => is_missing(source),
            _ => false,
        }
    }

    /// Returns whether the object has changed since the state that the write was for.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.has_reason("Conflict")
    }

    /// Returns whether the object exists already.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.has_reason("AlreadyExists")
    }

    /// Returns whether the API server refused the request for lack of permission.
    ///
    /// Admission refuses with 403 too, in other words.
    pub(crate) fn is_forbidden_by_rbac(&self) -> bool {
        let is_rbac = |status: &Status| {
            status.code == 403
                && status.message.contains(" cannot ")
                && status.message.contains(" resource ")
        };
        self.status().is_some_and(is_rbac)
    }

    /// Returns whether a write was refused because the object itself does not exist.
    ///
    /// The missing object can also be its namespace, which a retry does not create.
    pub(crate) fn is_object_missing(&self) -> bool {
        let Self::Refused { key, .. } = self else {
            return false;
        };
        let details = self.status().and_then(|status| status.details.as_ref());
        // The Status about a missing namespace names the namespace.
        self.is_not_found() && details.is_some_and(|details| details.name == key.name())
    }

    /// Returns the Status in the answer of the API server, if there is one.
    pub(crate) fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { source, .. } => status_of(source),
            _ => None,
        }
    }

    fn has_reason(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }
}
