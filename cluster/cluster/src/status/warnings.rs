//! Warnings that go with an answer.

use parking_lot::Mutex;

/// The number of warnings that a client gets.
///
/// Clients that use hyper accept no more than a hundred headers.
const MOST: usize = 80;

/// The total length from which warnings are cut, and the length of each then.
///
/// Source: `recorder` in `k8s.io/apiserver/pkg/endpoints/filters/warning.go`.
const CUT_FROM: usize = 4 * 1024;
const CUT_TO: usize = 256;

/// The warnings of one request.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    texts: Mutex<Vec<String>>,
}

impl Warnings {
    /// Adds a warning, unless it was given already or there are too many.
    pub(crate) fn add(&self, text: impl Into<String>) {
        let mut text = text.into();
        let mut texts = self.texts.lock();
        if texts.len() >= MOST || texts.contains(&text) {
            return;
        }
        let given: usize = texts.iter().map(String::len).sum();
        if given + text.len() > CUT_FROM {
            text = text.chars().take(CUT_TO).collect();
        }
        if given + text.len() <= 2 * CUT_FROM {
            texts.push(text);
        }
    }

    /// Takes all warnings, in the order in which they were given.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts.lock())
    }
}
