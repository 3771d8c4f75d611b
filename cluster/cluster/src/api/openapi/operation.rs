//! A path of a document and its operations.

use serde_json::Value;

use super::names::shared_name;

/// A path with its operations.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) path: String,
    pub(super) operations: Vec<ApiOperation>,
}

/// An operation: one method at a path.
#[derive(Debug)]
pub(super) struct ApiOperation {
    /// In lower case.
    pub(super) method: &'static str,
    pub(super) subject: Subject,
    /// The action, and the kind it is about; discovery has none.
    pub(super) about: Option<(&'static str, Value)>,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: String,
    pub(super) sends: Sends,
    /// The name of the schema of the answer.
    pub(super) answers: String,
    pub(super) parameters: Vec<&'static str>,
}

/// The subject of an operation, which decides its media types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    BuiltIn,
    /// It is never in protobuf.
    Custom,
    /// Versions, groups or resources.
    Discovery,
    /// The version of the server, which is in JSON only.
    Version,
}

/// The body of a request.
#[derive(Debug)]
pub(super) enum Sends {
    Nothing,
    /// A body of the schema with this name.
    Body(String),
    /// The same, but it may be left out.
    Optional(String),
    Patch,
}

impl Sends {
    /// Returns the name of the schema of a body, and whether there must be one.
    pub(super) fn schema(&self) -> Option<(String, bool)> {
        match self {
            Self::Nothing => None,
            Self::Body(name) => Some((name.clone(), true)),
            Self::Optional(name) => Some((name.clone(), false)),
            Self::Patch => Some((shared_name("Patch"), true)),
        }
    }
}

impl Path {
    pub(super) fn new(path: String, operations: Vec<ApiOperation>) -> Self {
        Self { path, operations }
    }
}
