//! Label selectors and field selectors, with the API server's grammar and messages.
//!
//! Source: `k8s.io/apimachinery/pkg/labels` and `…/pkg/fields`.

mod field;
mod label;
mod lexer;
#[cfg(test)]
mod tests;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// A selector that cannot be parsed. Its message is the API server's.
///
/// ```
/// use lariat::core::LabelSelector;
///
/// let error = "app in".parse::<LabelSelector>().unwrap_err();
/// assert!(error.to_string().starts_with("unable to parse requirement"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub(crate) String);
