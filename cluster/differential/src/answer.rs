//! An answer of a server, and the names that a sequence uses on it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The names a sequence uses, the same on both servers.
#[derive(Debug, Clone)]
pub struct Names {
    /// The namespace.
    pub namespace: String,
    /// The prefix of names outside of namespaces.
    pub id: String,
}

/// The answer of a server to a step.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The status; 0 if there was no answer.
    pub status: u16,
    /// The content type.
    pub content_type: String,
    /// The warnings, sorted.
    pub warnings: Vec<String>,
    /// The body.
    pub content: Content,
}

/// The body of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// A document.
    Json(Value),
    /// Another text.
    Text(String),
    /// The events of a watch.
    Events(Vec<Value>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Answer {
    /// Returns the document, if it is one.
    #[must_use]
    pub fn json(&self) -> Option<&Value> {
        match &self.content {
            Content::Json(value) => Some(value),
            _ => None,
        }
    }
}

impl From<anyhow::Error> for Answer {
    /// Makes an answer with status 0 and the error as its text: the server sent none.
    fn from(error: anyhow::Error) -> Self {
        Self {
            content: Content::Text(format!("{error:#}")),
            ..Self::default()
        }
    }
}
