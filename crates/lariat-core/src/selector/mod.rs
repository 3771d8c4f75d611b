//! Selectors over labels and fields, with the API server's grammar and error texts.
//!
//! Source: `k8s.io/apimachinery/pkg/labels` and `…/pkg/fields`.

mod field;
mod label;
mod lexer;
#[cfg(test)]
mod tests;

pub use field::FieldSelector;
pub use label::LabelSelector;

/// A selector that cannot be parsed; the text is the API server's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub(crate) String);
