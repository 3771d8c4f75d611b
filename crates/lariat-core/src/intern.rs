//! Keeping equal things once.

use std::fmt;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

/// Texts that are kept once.
///
/// A text that nobody else holds any more is forgotten when the collection has doubled since it was last
/// looked through, so it holds at most twice what is in use.
pub(crate) struct Texts {
    known: HashSet<Arc<str>>,
    /// How many texts there are when it is looked through next.
    sweep_at: usize,
}

/// Below this many texts looking through them is not worth the time.
const SMALL: usize = 256;

impl Texts {
    pub(crate) fn new() -> Self {
        Self {
            known: HashSet::new(),
            sweep_at: SMALL,
        }
    }

    /// Returns a text, shared with everybody who asked for an equal one and still has it.
    pub(crate) fn intern(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.known.shrink_to(SMALL);
            self.sweep_at = (2 * self.known.len()).max(SMALL);
        }
        let text: Arc<str> = text.into();
        self.known.insert(Arc::clone(&text));
        text
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

/// What was read of the JSON texts that came lately.
///
/// Everything is kept for as long as it is asked for among the last 64 kB of different texts, so at most 128 kB of texts
/// are held, however many there are.
pub(crate) struct Recent<V> {
    young: HashMap<Box<[u8]>, V>,
    /// What was young before, and is forgotten next unless it is asked for.
    old: HashMap<Box<[u8]>, V>,
    /// The size of what is young.
    bytes: usize,
}

/// How much is young at most.
const GENERATION: usize = 64 << 10;

/// What a text costs beside its bytes.
const ENTRY: usize = 64;

impl<V: Clone> Recent<V> {
    pub(crate) fn new() -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            bytes: 0,
        }
    }

    /// Returns what a text says, which is read unless it is known; errors are not remembered.
    pub(crate) fn get_or_read<E>(
        &mut self,
        text: &[u8],
        read: impl FnOnce(&[u8]) -> Result<V, E>,
    ) -> Result<V, E> {
        if let Some(known) = self.young.get(text) {
            return Ok(known.clone());
        }
        let size = text.len() + ENTRY;
        let (text, value) = match self.old.remove_entry(text) {
            Some(known) => known,
            None => (text.into(), read(text)?),
        };
        if self.bytes + size > GENERATION {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        // One that is as large as all others together is not worth their place.
        if size <= GENERATION / 8 {
            self.bytes += size;
            self.young.insert(text, value.clone());
        }
        Ok(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
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

    /// Asks for a text; returns whether it had to be read.
    fn is_read(recent: &mut Recent<usize>, text: &str) -> bool {
        let mut is_read = false;
        let value = recent.get_or_read(text.as_bytes(), |text| {
            is_read = true;
            Ok::<_, ()>(text.len())
        });
        assert_eq!(value, Ok(text.len()));
        is_read
    }

    #[test]
    fn what_is_asked_for_again_and_again_is_read_once() {
        let mut recent = Recent::new();
        assert!(is_read(&mut recent, "kept"));
        for number in 0..50_000 {
            is_read(&mut recent, &format!("other {number}"));
            if number % 100 == 0 {
                assert!(!is_read(&mut recent, "kept"), "{number}");
            }
        }
        assert!(is_read(&mut recent, "other 0"), "it was not asked for");
    }

    #[test]
    fn no_more_is_held_than_two_generations() {
        let mut recent = Recent::new();
        for number in 0..10_000 {
            is_read(&mut recent, &format!("{number:0200}"));
            assert!(recent.len() <= 2 * GENERATION / (200 + ENTRY));
        }
        assert!(is_read(&mut recent, &" ".repeat(GENERATION)));
        assert!(
            is_read(&mut recent, &" ".repeat(GENERATION)),
            "it is too long"
        );
    }

    #[test]
    fn errors_are_not_remembered() {
        let mut recent = Recent::new();
        assert_eq!(
            recent.get_or_read(b"a", |_| Err::<usize, _>("no")),
            Err("no")
        );
        assert!(is_read(&mut recent, "a"));
    }
}
