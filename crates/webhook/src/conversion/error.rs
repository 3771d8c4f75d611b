//! The errors of conversions.

use crate::admission::{ReviewError, Undecodable};

/// An object cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// The conversion does not know the version.
    #[error("{key}: {kind} in {api_version} cannot be converted: the versions are {known}")]
    UnknownVersion {
        /// Namespace and name of the object.
        key: String,
        /// The kind of the conversion.
        kind: String,
        /// The requested version, with its group.
        api_version: String,
        /// The known versions.
        known: String,
    },
    /// The object is of another kind.
    #[error("{key} of kind {found:?} cannot be converted: this is the conversion of {kind}")]
    OtherKind {
        /// Namespace and name of the object.
        key: String,
        /// The kind of the conversion.
        kind: String,
        /// The kind of the object.
        found: String,
    },
    /// The object does not decode as the type of its version.
    #[error("{key} cannot be converted from {from} to {to}")]
    Undecodable {
        /// Namespace and name of the object.
        key: String,
        /// The version of the object.
        from: String,
        /// The requested version.
        to: String,
        /// The field, and what is wrong with it.
        source: Box<Undecodable>,
    },
    /// The object of a round-trip check cannot be serialized.
    #[error("{key} in {from} cannot be serialized for a round trip")]
    Unserializable {
        /// Namespace and name of the object.
        key: String,
        /// The version of the object.
        from: String,
        /// The cause.
        source: serde_json::Error,
    },
    /// The function between two versions has failed.
    #[error("{key} cannot be converted from {from} to {to}")]
    Failed {
        /// Namespace and name of the object.
        key: String,
        /// The version of the object.
        from: String,
        /// The requested version.
        to: String,
        /// The error of the function.
        source: ReviewError,
    },
    /// The function between two versions has panicked.
    #[error("the conversion of {key} from {from} to {to} panicked")]
    Panicked {
        /// Namespace and name of the object.
        key: String,
        /// The version of the object.
        from: String,
        /// The requested version.
        to: String,
    },
    /// The function has changed metadata other than labels and annotations.
    #[error("the conversion of {key} to {to} changes {field}: copy the metadata of the object")]
    ChangedMetadata {
        /// Namespace and name of the object.
        key: String,
        /// The requested version.
        to: String,
        /// The field that differs.
        field: String,
    },
    /// A round trip through another version changes the object.
    #[error("{key} does not survive the conversion from {from} to {to} and back: {} differ", .fields.join(", "))]
    Lossy {
        /// Namespace and name of the object.
        key: String,
        /// The version of the object.
        from: String,
        /// The version of the round trip.
        to: String,
        /// The fields that differ.
        fields: Vec<String>,
    },
}
