//! The labels of an object, packed.

use std::fmt;

/// The labels of one object in a single allocation.
///
/// Objects have a handful of labels and there are many objects, so the pairs are packed one behind
/// the other and a lookup walks them. A NUL, which Kubernetes allows in neither keys nor values, ends
/// a text; pairs that contain one are left out.
///
/// ```
/// use lariat_core::Labels;
///
/// let labels: Labels = [("app", "web"), ("tier", "front")].into_iter().collect();
/// assert_eq!(labels.get("tier"), Some("front"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    /// `key NUL value NUL`, repeated.
    packed: Box<str>,
}

impl Labels {
    /// Returns the value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// Iterates over the pairs in the order the API server sent them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut texts = self.packed.split_terminator('\0');
        std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
    }

    /// Returns whether the object has no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Returns the bytes held on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.packed.len()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut packed = String::new();
        for (key, value) in pairs {
            let (key, value) = (key.as_ref(), value.as_ref());
            if key.contains('\0') || value.contains('\0') {
                continue;
            }
            packed.reserve(key.len() + value.len() + 2);
            packed.push_str(key);
            packed.push('\0');
            packed.push_str(value);
            packed.push('\0');
        }
        Self {
            packed: packed.into_boxed_str(),
        }
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_values_keep_their_place() {
        let labels: Labels = [("a", ""), ("b", "1"), ("c", "")].into_iter().collect();
        let pairs: Vec<_> = labels.iter().collect();
        assert_eq!(pairs, [("a", ""), ("b", "1"), ("c", "")]);
    }

    #[test]
    fn a_pair_with_a_nul_is_left_out_and_the_others_stay() {
        let labels: Labels = [("a\0", "1"), ("b", "2")].into_iter().collect();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("b", "2")]);
    }
}
