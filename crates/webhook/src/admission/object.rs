//! The objects of a request, decoded on first access.

use std::sync::{Arc, OnceLock};

use lariat_core::{Gvk, without_values};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The error of an object that cannot be decoded as its type.
///
/// A handler that returns it with `?` denies the request, with status 422 and the path of the field. Values are left
/// out of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {state} cannot be decoded as {gvk}: {path}: {reason}")]
pub struct Undecodable {
    gvk: Gvk,
    state: &'static str,
    path: String,
    reason: String,
}

impl Undecodable {
    /// Creates the error of a deserializer, for one state of an object.
    pub(crate) fn new(
        gvk: &Gvk,
        state: &'static str,
        error: &serde_path_to_error::Error<serde_json::Error>,
    ) -> Self {
        Self {
            gvk: gvk.clone(),
            state,
            path: error.path().to_string(),
            reason: without_values(&error.inner().to_string()),
        }
    }

    /// Returns the path of the field, such as `spec.size`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns what is wrong with the field, without its value.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// One state of the object: before or after the request.
pub(super) struct Object<K> {
    pub(super) raw: Option<Box<RawValue>>,
    state: &'static str,
    decoded: OnceLock<Result<Option<Arc<K>>, Undecodable>>,
}

impl<K: DeserializeOwned> Object<K> {
    pub(super) fn new(state: &'static str, raw: Option<Box<RawValue>>) -> Self {
        Self {
            // API servers send `null` for the object of a deletion.
            raw: raw.filter(|raw| raw.get() != "null"),
            state,
            decoded: OnceLock::new(),
        }
    }

    /// Returns the decoded object; it is decoded once.
    pub(super) fn get(&self, gvk: &Gvk) -> Result<Option<&Arc<K>>, Undecodable> {
        let decoded = self.decoded.get_or_init(|| {
            let Some(raw) = &self.raw else {
                return Ok(None);
            };
            decode(raw, self.state, gvk).map(|object| Some(Arc::new(object)))
        });
        match decoded {
            Ok(object) => Ok(object.as_ref()),
            Err(error) => Err(error.clone()),
        }
    }
}

/// Decodes an object as a type.
pub(super) fn decode<K: DeserializeOwned>(
    raw: &RawValue,
    state: &'static str,
    gvk: &Gvk,
) -> Result<K, Undecodable> {
    let mut json = serde_json::Deserializer::from_str(raw.get());
    // The error names the path of the field, which serde_json alone does not.
    serde_path_to_error::deserialize(&mut json)
        .map_err(|error| Undecodable::new(gvk, state, &error))
}
