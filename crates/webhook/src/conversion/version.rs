//! One version of a kind, with its functions to the hub and from it.

use std::error::Error;
use std::sync::Arc;

use lariat_core::Gvk;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ConversionError;
use crate::admission::{ReviewError, Undecodable};

/// The error of one step.
pub(super) enum StepError {
    Undecodable(Undecodable),
    Failed(ReviewError),
}

/// An object as the hub's type, and as its own type writes it.
pub(super) struct AsHub<H> {
    pub(super) hub: H,
    /// The object before the step, without fields that its type does not know.
    pub(super) typed: Value,
}

/// A function to the hub, with the type of the version erased.
type ToHub<H> = dyn Fn(&Value, &Gvk) -> Result<AsHub<H>, StepError> + Send + Sync;
/// A function from the hub, with the type of the version erased.
type FromHub<H> = dyn Fn(H) -> Result<Value, StepError> + Send + Sync;

/// A version of a kind.
pub(super) struct Version<H> {
    pub(super) gvk: Gvk,
    pub(super) to_hub: Arc<ToHub<H>>,
    pub(super) from_hub: Arc<FromHub<H>>,
}

impl<H> Version<H> {
    /// Creates a version from its functions.
    pub(super) fn new<V, ToError, FromError>(
        gvk: Gvk,
        to_hub: impl Fn(V) -> Result<H, ToError> + Send + Sync + 'static,
        from_hub: impl Fn(H) -> Result<V, FromError> + Send + Sync + 'static,
    ) -> Self
    where
        V: DeserializeOwned + Serialize + 'static,
        ToError: Into<Box<dyn Error + Send + Sync>>,
        FromError: Into<Box<dyn Error + Send + Sync>>,
    {
        let to_hub = move |object: &Value, gvk: &Gvk| {
            let value: V = decode(object, gvk).map_err(StepError::Undecodable)?;
            // Kept to find out which metadata the function has changed, as opposed to what the type has dropped.
            let typed = write(&value)?;
            let hub = to_hub(value).map_err(|error| StepError::Failed(error.into()))?;
            Ok(AsHub { hub, typed })
        };
        let from_hub = move |hub| {
            let value = from_hub(hub).map_err(|error| StepError::Failed(error.into()))?;
            write(&value)
        };
        Self {
            gvk,
            to_hub: Arc::new(to_hub),
            from_hub: Arc::new(from_hub),
        }
    }
}

fn write(value: &impl Serialize) -> Result<Value, StepError> {
    serde_json::to_value(value).map_err(|error| StepError::Failed(error.into()))
}

fn decode<V: DeserializeOwned>(object: &Value, gvk: &Gvk) -> Result<V, Undecodable> {
    serde_path_to_error::deserialize(object)
        .map_err(|error| Undecodable::new(gvk, "object", &error))
}

impl StepError {
    pub(super) fn into_error(self, key: &str, from: &str, to: &str) -> ConversionError {
        match self {
            Self::Undecodable(source) => ConversionError::Undecodable {
                key: key.to_owned(),
                from: from.to_owned(),
                to: to.to_owned(),
                source: Box::new(source),
            },
            Self::Failed(source) => ConversionError::Failed {
                key: key.to_owned(),
                from: from.to_owned(),
                to: to.to_owned(),
                source,
            },
        }
    }
}
