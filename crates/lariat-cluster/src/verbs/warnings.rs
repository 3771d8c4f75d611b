//! What a client is told beside the answer.

use std::sync::Arc;

use parking_lot::Mutex;

/// The warnings of one request; a clone adds to the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings {
    texts: Arc<Mutex<Vec<String>>>,
}

impl Warnings {
    /// Adds a warning, unless it was given already.
    pub(crate) fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut texts = self.texts.lock();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }

    /// Takes all warnings, in the order in which they were given.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts.lock())
    }
}
