//! Field selectors.

use std::fmt;
use std::str::FromStr;

use super::SelectorError;

/// A field selector: terms `path=value`, `path==value` and `path!=value`.
///
/// All terms must match. Which paths exist depends on the kind, so matching takes a function that returns the value at
/// a path. In a value, a backslash escapes `,`, `=` and itself.
///
/// ```
/// use lariat::core::FieldSelector;
///
/// let selector: FieldSelector = "metadata.name!=web,status.phase=Running".parse()?;
/// let field = |path: &str| if path == "metadata.name" { "api" } else { "Running" };
/// assert!(selector.matches(field));
/// # Ok::<(), lariat::core::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// The terms, all of which must match.
    terms: Vec<Term>,
}

/// A comparison of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    /// The path of the field.
    path: String,
    /// Whether the field must equal the value, or differ from it.
    equal: bool,
    /// The value, without escapes.
    value: String,
}

impl FieldSelector {
    /// Selects the object of a name.
    ///
    /// ```
    /// use lariat::core::FieldSelector;
    ///
    /// assert_eq!(FieldSelector::of_name("web").to_string(), "metadata.name=web");
    /// ```
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let term = Term {
            path: "metadata.name".to_owned(),
            equal: true,
            value: name.to_owned(),
        };
        Self { terms: vec![term] }
    }

    /// Returns whether an object matches; `field` returns its value at a path.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.terms
            .iter()
            .all(|term| (field(&term.path) == term.value) == term.equal)
    }

    /// Returns whether an object matches; `None` if a value decides that is not known.
    ///
    /// `field` returns the value at a path, if it knows it.
    ///
    /// ```
    /// use lariat::core::FieldSelector;
    ///
    /// let selector: FieldSelector = "metadata.name!=web,status.phase=Running".parse()?;
    /// let named = |name| selector.matches_known(|path| (path == "metadata.name").then_some(name));
    /// assert_eq!(named("web"), Some(false));
    /// assert_eq!(named("api"), None);
    /// # Ok::<(), lariat::core::SelectorError>(())
    /// ```
    pub fn matches_known<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> Option<bool> {
        let mut known = Some(true);
        for term in &self.terms {
            match field(&term.path).map(|value| (value == term.value) == term.equal) {
                Some(false) => return Some(false),
                Some(true) => {}
                None => known = None,
            }
        }
        known
    }

    /// Iterates over the paths of the selector's terms.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(|term| &*term.path)
    }

    /// Returns the value that the selector requires at a path, if any.
    ///
    /// ```
    /// use lariat::core::FieldSelector;
    ///
    /// let selector: FieldSelector = "metadata.name=web,status.phase!=Failed".parse()?;
    /// assert_eq!(selector.required("metadata.name"), Some("web"));
    /// assert_eq!(selector.required("status.phase"), None);
    /// # Ok::<(), lariat::core::SelectorError>(())
    /// ```
    #[must_use]
    pub fn required(&self, path: &str) -> Option<&str> {
        let term = self
            .terms
            .iter()
            .find(|term| term.equal && term.path == path)?;
        Some(&term.value)
    }

    /// Returns whether the selector is empty, so that it matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let sign = if term.equal { "=" } else { "!=" };
            write!(f, "{comma}{}{sign}", term.path)?;
            for c in term.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for FieldSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        // As in apimachinery, empty terms are ignored, and the first error is that of the first term in their order.
        let mut parts: Vec<&str> = split_unescaped(text)
            .filter(|part| !part.is_empty())
            .collect();
        let is_wrong =
            |part: &&str| split_term(part).is_none_or(|(_, _, value)| unescape(value).is_err());
        if let Some(part) = parts.iter().copied().filter(is_wrong).min() {
            return Err(SelectorError(match split_term(part) {
                Some((_, _, value)) => unescape(value).err().unwrap_or_default(),
                None => format!("invalid selector: '{text}'; can't understand '{part}'"),
            }));
        }
        // A term without a path and a value says nothing.
        parts.retain(|part| !matches!(*part, "=" | "==" | "!="));
        let terms = parts.into_iter().filter_map(|part| {
            let (path, equal, value) = split_term(part)?;
            Some(Term {
                path: path.to_owned(),
                equal,
                value: unescape(value).ok()?,
            })
        });
        Ok(Self {
            terms: terms.collect(),
        })
    }
}

/// Splits a text at the commas that are not escaped.
fn split_unescaped(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let is_separator = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        is_separator
    })
}

/// Splits a term into its path, whether it asks for equality, and its value, which may have escapes.
fn split_term(text: &str) -> Option<(&str, bool, &str)> {
    let is_operator = |(at, _): &(usize, char)| {
        let rest = &text[*at..];
        rest.starts_with('=') || rest.starts_with("!=")
    };
    let (at, _) = text.char_indices().find(is_operator)?;
    let (path, rest) = text.split_at(at);
    let (equal, value) = if let Some(value) = rest.strip_prefix("!=") {
        (false, value)
    } else if let Some(value) = rest.strip_prefix("==") {
        (true, value)
    } else {
        (true, rest.strip_prefix('=')?)
    };
    Some((path, equal, value))
}

/// Removes escapes.
///
/// Source: `UnescapeValue`.
fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    ));
                }
            },
            ',' | '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    c as u32
                ));
            }
            c => plain.push(c),
        }
    }
    Ok(plain)
}
