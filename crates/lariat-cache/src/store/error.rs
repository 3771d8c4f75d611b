//! Objects that are not what a view takes them for.

use lariat_core::{Gvk, ObjectKey, without_values};

/// An object that does not fit the type it is read as. It says which field, and never a value.
///
/// It concerns this object and this type alone: other objects, and other views of this one, are as
/// readable as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{gvk} {key} cannot be decoded: {detail}")]
pub struct DecodeError {
    gvk: Gvk,
    key: ObjectKey,
    detail: String,
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
        }
    }

    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}
