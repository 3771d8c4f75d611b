//! Interning: equal texts are stored once.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashSet;

/// Interned texts.
///
/// Unused texts are removed when the collection has doubled since the last removal, so it contains at most twice as
/// many texts as are in use.
pub(crate) struct Texts {
    /// The texts.
    known: HashSet<Arc<str>>,
    /// The size at which unused texts are removed next.
    sweep_at: usize,
}

/// A collection up to this size keeps unused texts.
const SMALL: usize = 256;

impl Texts {
    /// Creates an empty collection.
    pub(crate) fn new() -> Self {
        Self {
            known: HashSet::new(),
            sweep_at: SMALL,
        }
    }

    /// Returns a text that is shared with all callers that interned an equal one.
    pub(crate) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            // A count of one is the collection itself. No clone can be made meanwhile, because that takes `&mut self`.
            self.known.retain(|known| Arc::strong_count(known) > 1);
            // A table keeps its size when entries are removed, and a burst of texts may have made it large.
            self.known.shrink_to(SMALL);
            self.sweep_at = (2 * self.known.len()).max(SMALL);
        }
        let text: Arc<str> = text.into();
        self.known.insert(Arc::clone(&text));
        text
    }

    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_unused_ones_are_forgotten() {
        let mut texts = Texts::new();
        let kept = texts.intern("kept");
        for number in 0..10_000 {
            texts.intern(&number.to_string());
        }
        assert!(texts.len() <= SMALL, "{texts:?}");
        assert!(Arc::ptr_eq(&kept, &texts.intern("kept")));
    }
}
