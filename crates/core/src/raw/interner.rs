//! Stores the parts that many objects of a kind have in common once.

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use serde::Deserialize;

use super::borrowed::{Owner, PackedLabels, Text};
use super::object::OwnerRef;
use crate::intern::Texts;
use crate::{Labels, StrictObject};

/// Stores labels, owners and finalizers that objects of a kind share once.
///
/// Texts that no object uses are removed when the collection has doubled since the last removal, so it contains at most
/// twice as many texts as are in use. It also caches the parsed form of recently seen JSON of labels, owners and
/// finalizers, at most 128 kB of JSON for each of the three. An object with cached JSON shares the parsed form, and
/// nothing is parsed.
///
/// ```
/// use std::sync::Arc;
/// use lariat_core::Interner;
///
/// let mut interner = Interner::new();
/// let (one, other) = (interner.intern("apps/v1"), interner.intern("apps/v1"));
/// assert!(Arc::ptr_eq(&one, &other));
/// ```
pub struct Interner {
    /// The texts.
    texts: Texts,
    /// Recently parsed labels.
    labels: Recent<Labels>,
    /// Recently parsed owner references.
    owners: Recent<Arc<[OwnerRef]>>,
    /// Recently parsed finalizers.
    finalizers: Recent<Arc<[Arc<str>]>>,
}

impl Interner {
    /// Creates an empty interner.
    #[must_use]
    pub fn new() -> Self {
        Self {
            texts: Texts::new(),
            labels: Recent::new(),
            owners: Recent::new(),
            finalizers: Recent::new(),
        }
    }

    /// Returns a text that is shared with all callers that interned an equal one.
    pub fn intern(&mut self, text: &str) -> Arc<str> {
        self.texts.intern(text)
    }

    /// Parses labels; absent ones are empty.
    pub(super) fn labels(&mut self, json: Option<&[u8]>) -> Result<Labels, serde_json::Error> {
        let Some(json) = json else {
            return Ok(Labels::default());
        };
        // Borrowed apart from `self`, because the cache is borrowed too.
        let texts = &mut self.texts;
        self.labels.get_or_read(json, |json| {
            let PackedLabels(labels) = serde_json::from_slice(json)?;
            Ok(labels.intern(texts))
        })
    }

    /// Parses owner references; absent ones are empty.
    pub(super) fn owners(
        &mut self,
        json: Option<&[u8]>,
    ) -> Result<Arc<[OwnerRef]>, serde_json::Error> {
        let Some(json) = json else {
            return Ok(Arc::default());
        };
        let texts = &mut self.texts;
        self.owners.get_or_read(json, |json| {
            let owners: Vec<StrictObject<Owner<'_>>> = list(json)?;
            Ok(owners.iter().map(|owner| owner.0.intern(texts)).collect())
        })
    }

    /// Parses finalizers; absent ones are empty.
    pub(super) fn finalizers(
        &mut self,
        json: Option<&[u8]>,
    ) -> Result<Arc<[Arc<str>]>, serde_json::Error> {
        let Some(json) = json else {
            return Ok(Arc::default());
        };
        let texts = &mut self.texts;
        self.finalizers.get_or_read(json, |json| {
            let finalizers: Vec<Text<'_>> = list(json)?;
            Ok(finalizers
                .iter()
                .map(|name| texts.intern(&name.0))
                .collect())
        })
    }
}

/// Reads a list; null is the empty list, as in Go.
fn list<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<Vec<T>, serde_json::Error> {
    let list: Option<Vec<T>> = serde_json::from_slice(json)?;
    Ok(list.unwrap_or_default())
}

impl Default for Interner {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Interner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interner")
            .field("texts", &self.texts.len())
            .field("labels", &self.labels.len())
            .field("owners", &self.owners.len())
            .field("finalizers", &self.finalizers.len())
            .finish()
    }
}

/// A cache of parsed JSON texts, in two generations.
///
/// An entry stays as long as it is used once per 64 kB of different texts, so at most 128 kB of texts are stored.
struct Recent<V> {
    /// Entries that were used since the generation began.
    young: HashMap<Box<[u8]>, V>,
    /// The previous generation. Entries that are used move to the young one.
    old: HashMap<Box<[u8]>, V>,
    /// The size of the young generation, in bytes.
    bytes: usize,
}

/// The maximum size of a generation, in bytes.
const GENERATION: usize = 64 << 10;

/// The size of an entry apart from its text, in bytes.
const ENTRY: usize = 64;

impl<V: Clone> Recent<V> {
    /// Creates an empty cache.
    fn new() -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            bytes: 0,
        }
    }

    /// Returns the parsed form of a text; parses it if it is not cached.
    ///
    /// Errors are not cached.
    fn get_or_read<E>(
        &mut self,
        text: &[u8],
        read: impl FnOnce(&[u8]) -> Result<V, E>,
    ) -> Result<V, E> {
        if let Some(known) = self.young.get(text) {
            return Ok(known.clone());
        }
        let size = text.len() + ENTRY;
        // An entry of the old generation moves to the young one with its key.
        let (text, value) = match self.old.remove_entry(text) {
            Some(known) => known,
            None => (text.into(), read(text)?),
        };
        // Two generations approximate least-recently-used eviction without a list: whatever was not used during a whole
        // generation is dropped.
        if self.bytes + size > GENERATION {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        // A large text would displace many others.
        if size <= GENERATION / 8 {
            self.bytes += size;
            self.young.insert(text, value.clone());
        }
        Ok(value)
    }

    /// Returns the number of entries.
    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a text up; returns whether it had to be parsed.
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
    fn no_more_is_kept_than_two_generations() {
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
