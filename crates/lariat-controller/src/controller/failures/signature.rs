//! Recognises errors that differ only in their details, such as the key.

use std::hash::{DefaultHasher, Hash, Hasher};

use lariat_core::ObjectKey;

/// Returns a hash that is the same for errors that differ only in details.
///
/// Details are the name and the namespace of the key, and all words with digits: times, counters, addresses, uids,
/// generated names.
pub(super) fn signature(error: &str, key: &ObjectKey, is_final: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    is_final.hash(&mut hasher);
    let mut rest = error;
    while let Some(first) = rest.chars().next() {
        rest = if let Some(after) = without(rest, key.name()) {
            0u8.hash(&mut hasher);
            after
        } else if let Some(after) = key.namespace().and_then(|name| without(rest, name)) {
            1u8.hash(&mut hasher);
            after
        } else if first.is_alphanumeric() {
            let end = rest.find(|c: char| !c.is_alphanumeric());
            let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
            if word.contains(|c: char| c.is_ascii_digit()) {
                2u8.hash(&mut hasher)
            } else {
                word.hash(&mut hasher)
            }
            after
        } else {
            first.hash(&mut hasher);
            &rest[first.len_utf8()..]
        };
    }
    // Zero is reserved for `OTHER`.
    hasher.finish().max(1)
}

/// Returns the text after `name`, if it starts with that name as a whole word.
fn without<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(name).filter(|_| !name.is_empty())?;
    let ends = rest
        .chars()
        .next()
        .is_none_or(|next| !next.is_alphanumeric());
    ends.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: &str, name: &str) -> u64 {
        signature(error, &ObjectKey::namespaced("default", name), false)
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
        assert_ne!(of("refused", "a"), of("reset", "a"));
        assert_ne!(of("", "a"), 0);
    }
}
