//! Objects that are not what a view takes them for, and questions a cache cannot answer.

use lariat_core::{Gvk, ObjectKey, without_values};

/// An object that cannot be read as some type. It says which field is wrong, and no value, unless the type's
/// own `Deserialize` puts one into its message.
///
/// It concerns this object and this type alone: other objects, and other views of this one, are as
/// readable as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{gvk} {key} cannot be decoded: {detail}")]
pub struct DecodeError {
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
        Self {
            gvk: gvk.clone(),
            key: key.clone(),
            detail,
            no_content: false,
        }
    }

    pub(super) fn no_content(gvk: &Gvk, key: &ObjectKey) -> Self {
        Self {
            gvk: gvk.clone(),
            key: key.clone(),
            detail: "only its metadata is cached; Informer::load fetches the content".to_owned(),
            no_content: true,
        }
    }

    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns whether nothing is wrong with the object, but only its metadata is cached.
    #[must_use]
    pub fn is_no_content(&self) -> bool {
        self.no_content
    }
}

/// An index that cannot be added or asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The kind has no index of that name.
    #[error("{gvk} has no index {name:?}; add it with Cache::add_index first")]
    Unknown {
        /// The kind.
        gvk: Gvk,
        /// The name that was asked for.
        name: String,
    },
    /// The kind has an index of that name already.
    #[error("{gvk} has an index {name:?} already")]
    NameTaken {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
    },
}
