//! Errors of texts that are not values.

/// The error of a text that is not a value of the expected type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {form}")]
pub struct ValueError {
    text: String,
    form: &'static str,
}

impl ValueError {
    pub(crate) fn new(text: &str, form: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            form,
        }
    }
}
