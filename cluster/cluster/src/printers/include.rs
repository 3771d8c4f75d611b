//! The parameter `includeObject` of requests for tables.

use lariat_apimachinery::cause::StatusCause;

use crate::status::ApiError;
use crate::wire::query::Query;

/// The part of an object that its row carries: `includeObject`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

impl Include {
    /// Reads the parameter of a request.
    ///
    /// # Errors
    ///
    /// Its value is not one of the three.
    pub(crate) fn of(query: &Query) -> Result<Self, ApiError> {
        Ok(match query.text("includeObject") {
            None | Some("Metadata") => Self::Metadata,
            Some("None") => Self::None,
            Some("Object") => Self::Object,
            Some(other) => {
                let reason = "must be 'Metadata', 'Object', 'None', or empty";
                let cause = StatusCause::invalid("includeObject", &other.into(), reason);
                return Err(ApiError::bad_request(format!(
                    "Unable to convert to Table as requested: {}",
                    cause.text()
                )));
            }
        })
    }
}
