//! The errors of decoding objects and of indexes.

use std::error::Error;

use lariat_core::{Gvk, ObjectKey, without_values};

/// An object that cannot be decoded as a type.
///
/// The message names the wrong field, and contains no value of the object, unless the type's own `Deserialize` puts one
/// into its error. The error affects this object and this type only: other objects, and other views of this one, remain
/// readable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {} cannot be decoded: {}", failure.gvk, failure.key, failure.detail)]
pub struct DecodeError {
    #[source]
    failure: Failure,
}

/// The source of the error, with the object and its fault.
///
/// The failure is a separate type because wrappers that show an error as their own, such as `#[error(transparent)]` and
/// `anyhow::Error`, pass on its sources, but not the error itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
struct Failure {
    gvk: Gvk,
    key: ObjectKey,
    detail: String,
    no_content: bool,
}

impl DecodeError {
    pub(super) fn new(
        gvk: &Gvk,
        key: &ObjectKey,
        error: Option<serde_path_to_error::Error<serde_json::Error>>,
    ) -> Self {
        let detail = error.map_or_else(
            || "the content is not what the type expects".to_owned(),
            |error| {
                let message = without_values(&error.inner().to_string());
                format!("{message} (at {})", error.path())
            },
        );
        Self::of(gvk, key, detail, false)
    }

    pub(super) fn no_content(gvk: &Gvk, key: &ObjectKey) -> Self {
        let detail = "only its metadata is cached; Informer::load fetches the content";
        Self::of(gvk, key, detail.to_owned(), true)
    }

    fn of(gvk: &Gvk, key: &ObjectKey, detail: String, no_content: bool) -> Self {
        let (gvk, key) = (gvk.clone(), key.clone());
        Self {
            failure: Failure {
                gvk,
                key,
                detail,
                no_content,
            },
        }
    }

    /// Returns the kind of the object.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.failure.gvk
    }

    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.failure.key
    }

    /// Returns whether the object is valid, but only its metadata is cached.
    ///
    /// [`Informer::load`](crate::Informer::load) fetches the content.
    #[must_use]
    pub fn is_no_content(&self) -> bool {
        self.failure.no_content
    }

    /// Returns the object that could not be decoded, if that caused an error.
    ///
    /// The error may be a `DecodeError` or wrap one. Unlike a downcast, this searches all sources, and finds what
    /// `anyhow` or `#[error(transparent)]` wraps. Returns `None` if [only metadata is cached](Self::is_no_content).
    ///
    /// ```
    /// use lariat::cache::DecodeError;
    ///
    /// let error = std::io::Error::other("no object is involved");
    /// assert!(DecodeError::object_behind(&error).is_none());
    /// ```
    #[must_use]
    pub fn object_behind<'a>(error: &'a (dyn Error + 'static)) -> Option<(&'a Gvk, &'a ObjectKey)> {
        let causes = std::iter::successors(Some(error), |each| (*each).source());
        let mut failures = causes.filter_map(|each| each.downcast_ref::<Failure>());
        let failure = failures.find(|failure| !failure.no_content)?;
        Some((&failure.gvk, &failure.key))
    }
}

/// An index that cannot be added or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The kind has no index of that name.
    #[error("{gvk} has no index {name:?}; add it with Cache::add_index first")]
    Unknown {
        /// The kind.
        gvk: Gvk,
        /// The requested name.
        name: String,
    },
    /// The kind already has an index of that name.
    #[error("{gvk} has an index {name:?} already")]
    NameTaken {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
    },
}
