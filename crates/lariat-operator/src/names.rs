//! Names that Kubernetes accepts, and the keys of annotations that several modules use.

/// The annotation of an applied object with the hash of what was applied.
pub(crate) const APPLIED: &str = "lariat.dev/applied";

/// The prefix of the annotations in which an owner records its sets; the names of operator and set follow.
pub(crate) const NOTES: &str = "applied.lariat.dev/";

const LONGEST_DOMAIN: usize = 253;
/// The longest word of a qualified name, in bytes.
pub(crate) const LONGEST_WORD: usize = 63;
const LONGEST_MANAGER: usize = 128;

/// Returns why a text cannot be a field manager, if it cannot.
pub(crate) fn not_a_manager(text: &str) -> Option<&'static str> {
    let is_shown = |c: char| c == ' ' || !(c.is_control() || c.is_whitespace());
    match text {
        "" => Some("is empty"),
        text if text.len() > LONGEST_MANAGER => Some("is longer than 128 bytes"),
        text if !text.chars().all(is_shown) => Some("has characters that cannot be printed"),
        _ => None,
    }
}

/// Returns the field manager under which one reconciler of an operator applies: `operator/reconciler`, with a hash for
/// what does not fit into 128 bytes or cannot be printed.
///
/// It is the same in every process and version, because the API server keeps fields under it.
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

/// The hash FNV-1a, which unlike the standard library's never changes.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns the hash of a text.
pub(crate) fn fnv(text: &str) -> u64 {
    let mut hash = Fnv::default();
    hash.write(text.as_bytes());
    hash.finish()
}

/// Returns whether a text is a domain in lower case, as before the slash of a qualified name.
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

/// Returns whether a text is letters and digits, with `-`, `_` and `.` inside, as after the slash of a qualified name.
pub(crate) fn is_word(text: &str) -> bool {
    let ends_well = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let taken = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    ends_well(text.bytes().next()) && ends_well(text.bytes().next_back()) && text.bytes().all(taken)
}

/// Returns whether a text is a qualified name, as the keys of labels and annotations are: a word of at most 63 bytes,
/// perhaps behind a domain and a slash.
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
