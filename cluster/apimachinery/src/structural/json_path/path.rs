//! Paths, and the values at them.

use std::fmt;

use serde_json::Value;

use super::parse::Limits;
use super::search::Search;

/// A parsed JSONPath.
///
/// ```
/// use lariat_apimachinery::structural::json_path::JsonPath;
/// use serde_json::json;
///
/// let path = JsonPath::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
/// let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// assert_eq!(path.first(&object), Some(&json!("True")));
/// assert_eq!(path.first(&json!({})), None);
/// # Ok::<(), lariat_apimachinery::structural::json_path::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonPath {
    pub(super) segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Segment {
    Member(String),
    /// All members or elements.
    Wildcard,
    /// Whatever lies below, itself included, that has something in it.
    Descend,
    /// From, to and step of a range of elements; negative ends count from the end.
    Slice(Option<i64>, Option<i64>, i64),
    Index(i64),
    /// What each of some paths leads to.
    Union(Vec<JsonPath>),
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    pub(super) left: Operand,
    /// The operator and its right side; `None` if the filter checks existence only.
    pub(super) compared: Option<(&'static str, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    Path(JsonPath),
    Literal(Value),
}

/// Why a path cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathError {
    /// It cannot be read.
    Malformed(String),
    /// It has more steps or levels than a path may have here.
    TooLarge(String),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) | Self::TooLarge(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for PathError {}

impl From<PathError> for String {
    fn from(error: PathError) -> Self {
        error.to_string()
    }
}

impl From<String> for PathError {
    fn from(text: String) -> Self {
        Self::Malformed(text)
    }
}

impl JsonPath {
    /// Parses a path, with or without the braces of a template around it.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or that it is too long.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Limits::new().path(text)
    }

    /// Parses member names separated by dots, without any other syntax.
    ///
    /// # Errors
    ///
    /// It has too many names.
    pub fn dotted(text: &str) -> Result<Self, PathError> {
        let mut limits = Limits::new();
        // The paths of a scale subresource have no brackets or escapes, so a dot always separates.
        let names = text.strip_prefix('.').unwrap_or(text).split('.');
        let segments = names
            .map(|name| limits.segment(Segment::Member(name.to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self { segments })
    }

    /// Returns the first value at the path; `None` if a part of the path is missing.
    ///
    /// A search that fails, as beyond the end of a list, returns `None` too, and so does one that would visit too many
    /// values.
    #[must_use]
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        let found = Search::new().find(&self.segments, vec![root]);
        found.ok()?.first().copied()
    }

    /// Returns the names of a path that consists of members only.
    ///
    /// ```
    /// use lariat_apimachinery::structural::json_path::JsonPath;
    ///
    /// assert_eq!(JsonPath::parse(".spec.replicas")?.members(), Some(vec!["spec", "replicas"]));
    /// assert_eq!(JsonPath::parse(".spec.items[0]")?.members(), None);
    /// # Ok::<(), lariat_apimachinery::structural::json_path::PathError>(())
    /// ```
    pub fn members(&self) -> Option<Vec<&str>> {
        self.segments.iter().map(Segment::name).collect()
    }
}

impl Segment {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Member(name) => Some(name),
            _ => None,
        }
    }
}
