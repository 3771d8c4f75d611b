//! Sequences of requests, as values.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edit::Edit;

/// Requests that are made one after the other.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sequence {
    /// Its number among those of the seed.
    pub number: usize,
    /// The requests.
    pub steps: Vec<Step>,
    /// What is deleted afterwards: collections of the namespace, and objects.
    pub cleanup: Vec<Cleanup>,
    /// Whether its namespace may serve another sequence.
    pub reusable: bool,
}

/// What a sequence may leave behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cleanup {
    /// A collection in the namespace of the sequence.
    Collection(String),
    /// An object.
    Object(String),
}

/// One request.
///
/// Texts in it may have placeholders: `${ns}` is the sequence's namespace, `${id}` a name for what is outside of
/// namespaces; `${rv:7}`, `${uid:7}` and `${continue:7}` are of the answer to step 7.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    /// Its name for other steps; it stays as others are removed.
    pub id: usize,
    /// The kind it is about.
    pub kind: String,
    /// What it does, for reports.
    pub verb: String,
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<(String, String)>,
    /// The headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default, skip_serializing_if = "Body::is_none")]
    pub body: Body,
    /// What is made of the answer.
    #[serde(default, skip_serializing_if = "How::is_answer")]
    pub how: How,
}

/// The body of a request.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    /// There is none.
    #[default]
    None,
    /// A document.
    Json(Value),
    /// The object another step answered, with changes.
    Edited {
        /// The other step.
        of: usize,
        /// The changes.
        edits: Vec<Edit>,
    },
    /// A text, which need not be a document.
    Text(String),
}

/// What is made of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// It is compared.
    #[default]
    Answer,
    /// It is a watch that ends by itself; its events are compared.
    Watch,
    /// A watch that stays open until the other steps are done.
    ///
    /// Its events are compared.
    Live,
    /// Repeated until it is answered 404 or an empty list, or for five seconds.
    ///
    /// The last answer is compared.
    UntilGone,
}

impl Body {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

impl How {
    fn is_answer(&self) -> bool {
        *self == Self::Answer
    }
}

impl Step {
    /// Returns whether it may change what is stored.
    #[must_use]
    pub fn writes(&self) -> bool {
        // Reviews are POSTs that store nothing.
        let is_dry = self.query.iter().any(|(name, _)| name == "dryRun");
        self.method != "GET" && !is_dry && !self.path.contains("review")
    }

    /// Returns whether it makes use of the answer to another step.
    #[must_use]
    pub fn refers_to(&self, id: usize) -> bool {
        let text = serde_json::to_string(self).unwrap_or_default();
        let edits = matches!(self.body, Body::Edited { of, .. } if of == id);
        edits || text.contains(&format!(":{id}}}"))
    }
}
