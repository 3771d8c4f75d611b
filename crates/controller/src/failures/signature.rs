//! Recognises errors that differ only in their details, such as the key.

use std::hash::{DefaultHasher, Hash, Hasher};

use lariat_core::ObjectKey;

/// Returns a hash that is the same for errors that differ only in details; it is not zero.
///
/// Details are the name and the namespace of the key, and all words with digits: times, counters, addresses, uids,
/// generated names. Words may contain dashes and dots.
pub(super) fn signature(error: &str, key: &ObjectKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    let words = error.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '.'));
    for word in words.map(|word| word.trim_matches(['-', '.'])) {
        let is_name = word == key.name() || Some(word) == key.namespace();
        if is_name || word.contains(|c: char| c.is_ascii_digit()) {
            0u8.hash(&mut hasher);
        } else {
            word.hash(&mut hasher);
        }
    }
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: &str, name: &str) -> u64 {
        signature(error, &ObjectKey::namespaced("default", name))
    }

    #[test]
    fn errors_that_differ_in_the_key_alone_are_one() {
        let error = |name: &str| format!("cannot write v1 Pod default/{name}: refused");
        assert_eq!(
            of(&error("web"), "web"),
            of(&error("api-server"), "api-server")
        );
        assert_eq!(of(&error("web"), "web"), of(&error("a"), "a"));
        assert_ne!(of(&error("web"), "web"), of(&error("api"), "web"));
        assert_eq!(of("after 5ms", "a"), of("after 17ms", "b"));
        assert_eq!(of("no a.", "a"), of("no b.", "b"));
        assert_ne!(of("refused", "a"), of("reset", "a"));
        assert_ne!(of("", "a"), 0);
    }
}
