//! Texts that are no values.

/// A text that is no value of the type it should have.
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
