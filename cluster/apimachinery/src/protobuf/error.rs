//! The error of a body that cannot be read.

/// The deepest nesting of messages; schemas of CRDs are the deepest.
pub(super) const DEPTH: usize = 100;

/// The error of decoding a protobuf body.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtobufError {
    /// It does not begin as such bodies do.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    /// It ends in the middle of something.
    #[error("unexpected EOF")]
    Cut,
    /// A number is too large.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field has a number that none can have.
    #[error("proto: illegal tag {number} (wire type {wire_type})")]
    Tag {
        /// The number of the field.
        number: u64,
        /// Its wire type.
        wire_type: u8,
    },
    /// A field is written in a way that there is not.
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    /// A field is written in another way than its type is.
    #[error("proto: wrong wireType = {0}")]
    OtherWireType(u8),
    /// A known field is written in another way than its type is.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    Field {
        /// Its wire type.
        wire_type: u8,
        /// The name of the field.
        field: String,
    },
    /// Messages are nested too deep.
    #[error("proto: messages are nested deeper than {DEPTH}")]
    TooDeep,
    /// A time is out of range.
    #[error("proto: a time is out of range")]
    Time,
    /// There is no such built-in kind.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    Kind {
        /// The version the body names.
        api_version: String,
        /// The kind the body names.
        kind: String,
    },
    /// A raw value is no JSON.
    #[error("a raw value is not JSON: {0}")]
    Raw(#[from] serde_json::Error),
}
