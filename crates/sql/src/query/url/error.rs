//! Errors of the URL form of a query.

/// The parameters of a query in a URL.
pub(super) const PARAMETERS: [&str; 16] = [
    "filter",
    "sort",
    "search",
    "namespaces",
    "namespaces!",
    "projectsornamespaces",
    "projectsornamespaces!",
    "projectlabel",
    "page",
    "pagesize",
    "limit",
    "continue",
    "summary",
    "summaryonly",
    "summarynamespaced",
    "revision",
];

/// The largest number of characters of a parameter that an error shows.
const EXCERPT: usize = 120;

/// The error of a text that is not the URL form of a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// No parameter has this name.
    #[error("unknown parameter {parameter:?}: known are {}", PARAMETERS.join(", "))]
    Unknown {
        /// The name, or its beginning.
        parameter: String,
    },
    /// A parameter other than `filter` and `sort` occurs more than once.
    #[error(
        "the parameter {parameter} is given twice, as {first:?} and as {second:?}: give it once"
    )]
    Repeated {
        /// The parameter.
        parameter: &'static str,
        /// Its first value, or the beginning of it.
        first: String,
        /// Its second value, or the beginning of it.
        second: String,
    },
    /// Two parameters contradict each other.
    #[error("the parameters {one} and {other} contradict each other: leave one of them out")]
    Contradiction {
        /// One of them.
        one: &'static str,
        /// The other one.
        other: &'static str,
    },
    /// A parameter has no meaning without another one.
    #[error("the parameter {parameter} needs the parameter {needed}: add that, or leave both out")]
    Needs {
        /// The parameter.
        parameter: &'static str,
        /// The parameter that it needs.
        needed: &'static str,
    },
    /// The value of a parameter cannot be read.
    #[error(
        "the parameter {parameter} has {found} at character {at} of {text:?}; expected {wanted}"
    )]
    Syntax {
        /// The parameter.
        parameter: &'static str,
        /// What was found.
        found: String,
        /// The position in the decoded value, in characters counted from 1.
        at: usize,
        /// The decoded value, or its beginning.
        text: String,
        /// What is valid there.
        wanted: &'static str,
    },
    /// The decoded text is not UTF-8.
    #[error(
        "the query string is not UTF-8 after its first {valid} decoded bytes: encode texts as UTF-8 before percent-encoding them"
    )]
    Encoding {
        /// How many decoded bytes are UTF-8.
        valid: usize,
    },
}

impl UrlError {
    /// Returns the invalid parameter, if there is one.
    #[must_use]
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Self::Unknown { parameter } => Some(parameter),
            Self::Repeated { parameter, .. }
            | Self::Needs { parameter, .. }
            | Self::Syntax { parameter, .. } => Some(parameter),
            Self::Contradiction { one, .. } => Some(one),
            Self::Encoding { .. } => None,
        }
    }

    /// Creates a syntax error at a byte of a decoded value.
    pub(super) fn syntax(
        parameter: &'static str,
        text: &str,
        byte: usize,
        wanted: &'static str,
    ) -> Self {
        let (before, rest) = text.split_at_checked(byte).unwrap_or((text, ""));
        let found = match rest.chars().next() {
            Some(found) => format!("{found:?}"),
            None if text.is_empty() => "nothing".to_owned(),
            None => "its end".to_owned(),
        };
        Self::Syntax {
            parameter,
            found,
            at: before.chars().count() + 1,
            text: excerpt(text),
            wanted,
        }
    }
}

/// Returns a text, or its beginning if it is long.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
