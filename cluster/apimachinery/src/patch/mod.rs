//! Patches of objects: JSON patch, JSON merge patch and strategic merge patch.

mod error;
mod json;
mod merge;
mod read;
mod strategic;

use serde_json::Value;

use crate::go_json;
use crate::object::Object;
use crate::schema::TypeRef;

pub use error::PatchError;
pub use json::PatchOperation;

/// A parsed patch, which can be applied any number of times.
#[derive(Debug, Clone)]
pub enum Patch {
    /// A JSON patch (RFC 6902): operations, one after the other.
    Json(Vec<PatchOperation>),
    /// A JSON merge patch (RFC 7386).
    ///
    /// Null removes, maps merge, everything else replaces.
    Merge(Value),
    /// A strategic merge patch, which merges lists by the keys of their items.
    Strategic(Object),
}

impl Patch {
    /// Reads a JSON patch: a list of operations.
    ///
    /// # Errors
    ///
    /// [`PatchError::Unreadable`] and [`PatchError::TooManyOperations`].
    ///
    /// ```
    /// use lariat_apimachinery::patch::{Patch, PatchError};
    ///
    /// let patch = Patch::json(br#"[{"op": "remove", "path": "/spec/replicas"}]"#)?;
    /// assert!(matches!(patch, Patch::Json(operations) if operations.len() == 1));
    /// assert!(Patch::json(b"{}").is_err());
    /// # Ok::<(), PatchError>(())
    /// ```
    pub fn json(text: &[u8]) -> Result<Self, PatchError> {
        let unreadable = |error: serde_json::Error| {
            let syntax = go_json::syntax_error(text);
            PatchError::Unreadable(
                syntax.unwrap_or_else(|| match serde_json::from_slice(text) {
                    Ok(Value::Array(_)) | Err(_) => error.to_string(),
                    Ok(other) => go_json::type_error(&other, "[]handlers.jsonPatchOp"),
                }),
            )
        };
        let operations: Vec<PatchOperation> = serde_json::from_slice(text).map_err(unreadable)?;
        Self::of_operations(operations)
    }

    /// Reads a parsed JSON patch.
    ///
    /// Also returns the paths of members that no operation has.
    ///
    /// # Errors
    ///
    /// As for [`json`](Self::json).
    pub fn of_json(document: Value) -> Result<(Self, Vec<String>), PatchError> {
        let (operations, unknown) = read::operations(document).map_err(PatchError::Unreadable)?;
        Ok((Self::of_operations(operations)?, unknown))
    }

    fn of_operations(operations: Vec<PatchOperation>) -> Result<Self, PatchError> {
        if operations.len() > json::MOST_OPERATIONS {
            return Err(PatchError::TooManyOperations {
                limit: json::MOST_OPERATIONS,
                sent: operations.len(),
            });
        }
        Ok(Self::Json(operations))
    }

    /// Returns the patched object.
    ///
    /// Its type decides how a strategic merge patch merges lists.
    ///
    /// # Errors
    ///
    /// The patch does not fit the object ([`PatchError::Inapplicable`]), results in something else than an object, or
    /// contradicts itself.
    ///
    /// ```
    /// use lariat_apimachinery::patch::{Patch, PatchError};
    /// use lariat_apimachinery::{object::Object, schema};
    /// use serde_json::{Value, json};
    ///
    /// let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    /// let pod = object(json!({"spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "log"}]}}));
    /// let types = schema::builtin("v1", "Pod").expect("it is built in");
    ///
    /// // Containers are merged by their names.
    /// let patch = object(json!({"spec": {"containers": [{"name": "web", "image": "web:2"}]}}));
    /// let patched: Object = Patch::Strategic(patch).apply(types.root(), pod)?;
    /// assert_eq!(patched["spec"]["containers"][0]["image"], "web:2");
    /// assert_eq!(patched["spec"]["containers"][1]["name"], "log");
    /// # Ok::<(), PatchError>(())
    /// ```
    pub fn apply(&self, typed: TypeRef<'_>, object: Object) -> Result<Object, PatchError> {
        let mut document = Value::Object(object);
        match self {
            Self::Merge(patch) => merge::apply(&mut document, patch),
            Self::Json(operations) => {
                json::apply(&mut document, operations).map_err(PatchError::Inapplicable)?;
            }
            Self::Strategic(patch) => {
                if let Value::Object(object) = document {
                    document = Value::Object(strategic::apply(typed, object, patch)?);
                }
            }
        }
        match document {
            Value::Object(object) => Ok(object),
            _ => Err(PatchError::NoObject),
        }
    }
}
