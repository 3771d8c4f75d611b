//! Rules for names in Kubernetes, and the annotation keys that several modules use.

use lariat_core::{FNV_OFFSET, fnv1a};

/// The annotation of an applied object with the hash of what was applied.
pub(crate) const APPLIED: &str = "lariat.dev/applied";

/// The annotation with the lease under which an object was last written.
pub(crate) const LEASE: &str = "lariat.dev/lease";

/// The prefix of the annotations in which an owner records its sets.
///
/// The names of operator and set follow.
pub(crate) const NOTES: &str = "applied.lariat.dev/";

/// The maximum length of a domain in bytes.
const LONGEST_DOMAIN: usize = 253;
/// The maximum length of the word of a qualified name in bytes.
pub(crate) const LONGEST_WORD: usize = 63;
/// The maximum length of a field manager in bytes.
const LONGEST_MANAGER: usize = 128;

/// Returns why a text cannot be a field manager, or `None` if it can.
pub(crate) fn not_a_manager(text: &str) -> Option<&'static str> {
    let is_shown = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace());
    match text {
        "" => Some("is empty"),
        text if text.len() > LONGEST_MANAGER => Some("is longer than 128 bytes"),
        text if !text.chars().all(is_shown) => Some("has unprintable characters"),
        _ => None,
    }
}

/// Returns the field manager under which one reconciler of an operator applies.
///
/// It is `operator/reconciler`. A name that is too long or has unprintable characters is replaced by the beginning of
/// the operator's name and a hash. The result is the same in every process and version, because the API server stores
/// the ownership of fields under it.
pub(crate) fn manager_of(operator: &str, reconciler: &str) -> String {
    let whole = format!("{operator}/{reconciler}");
    if not_a_manager(&whole).is_none() {
        return whole;
    }
    let hash = format!("/{:016x}", fnv(&whole));
    let room = LONGEST_MANAGER - hash.len();
    let fits = |end: &usize| operator.is_char_boundary(*end);
    let end = (0..=room.min(operator.len())).rev().find(fits);
    format!("{}{hash}", &operator[..end.unwrap_or_default()])
}

/// An FNV-1a hash that grows.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(FNV_OFFSET)
    }
}

impl Fnv {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.0 = fnv1a(self.0, bytes);
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns the hash of a text.
pub(crate) fn fnv(text: &str) -> u64 {
    fnv1a(FNV_OFFSET, text.as_bytes())
}

/// Returns whether a text is a domain, as before the slash of a qualified name.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        let taken = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(taken)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= LONGEST_DOMAIN && text.split('.').all(is_label)
}

/// Returns whether a text is a word, as after the slash of a qualified name.
///
/// It has letters and digits, with `-`, `_` and `.` inside.
pub(crate) fn is_word(text: &str) -> bool {
    let ends_well = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let taken = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ends_well(text.bytes().next()) && ends_well(text.bytes().next_back()) && text.bytes().all(taken)
}

/// Returns whether a text is a qualified name, such as the key of a label.
///
/// It is a word of at most 63 bytes, perhaps after a domain and a slash.
pub(crate) fn is_qualified(text: &str) -> bool {
    let (domain, word) = match text.split_once('/') {
        Some((domain, word)) => (Some(domain), word),
        None => (None, text),
    };
    domain.is_none_or(is_domain) && is_word(word) && word.len() <= LONGEST_WORD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reconciler_has_a_field_manager_of_its_own() {
        assert_eq!(manager_of("op", "sizes"), "op/sizes");
        let long = "x".repeat(LONGEST_MANAGER);
        let umlauts = "ä".repeat(LONGEST_MANAGER / 2);
        for (operator, reconciler) in [
            (&*long, "a"),
            (&*umlauts, "a"),
            ("op", &*long),
            ("op", "a\tb"),
        ] {
            let manager = manager_of(operator, reconciler);
            assert_eq!(not_a_manager(&manager), None, "{manager}");
            assert_ne!(manager, manager_of(operator, "another"));
        }
        // The API server stores fields under this name, so it must not change with a release.
        assert_eq!(manager_of("op", "a\tb"), "op/460f8cded8353d51");
    }
}
