//! The labels of an object, in compact form.

use std::fmt;
use std::sync::Arc;

use crate::intern::Texts;

/// The labels of an object, packed into one allocation.
///
/// An object has a handful of labels, and there are many objects. So the pairs are stored one after another, a lookup
/// scans them, and objects with equal labels can share the allocation. A NUL ends a text. Kubernetes allows it in
/// neither keys nor values; pairs that contain one are dropped.
///
/// ```
/// use lariat::core::Labels;
///
/// let labels: Labels = [("app", "web"), ("tier", "front")].into_iter().collect();
/// assert_eq!(labels.get("tier"), Some("front"));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    /// `key NUL value NUL`, repeated.
    packed: Arc<str>,
}

impl Labels {
    /// Returns the value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        // A scan of a handful of pairs in one cache line or two is faster than a hash table.
        self.iter().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// Iterates over keys and values, in the order of the API server.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut texts = self.packed.split_terminator('\0');
        std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
    }

    /// Returns whether the object has no labels.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Shares the allocation with equal labels of other objects.
    #[must_use]
    pub(crate) fn intern(self, texts: &mut Texts) -> Self {
        if self.is_empty() {
            return Self::default();
        }
        Self {
            packed: texts.intern(&self.packed),
        }
    }

    /// Returns whether both share an allocation, which implies that they are equal.
    #[must_use]
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.packed, &other.packed)
    }

    /// Returns the size on the heap, in bytes.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.packed.len()
    }
}

/// Validation of label keys and values.
///
/// Source: `k8s.io/apimachinery/pkg/util/validation`, `IsQualifiedName` and `IsValidLabelValue`.
impl Labels {
    /// Validates a label key: `[prefix/]name`.
    ///
    /// # Errors
    ///
    /// The violated rules, in the API server's words.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::core::Labels;
    ///
    /// assert!(Labels::check_key("app.kubernetes.io/name").is_ok());
    /// assert!(Labels::check_key("-app").is_err());
    /// ```
    pub fn check_key(key: &str) -> Result<(), String> {
        let mut broken = Vec::new();
        let name = match key.split_once('/') {
            None => key,
            Some((_, name)) if name.contains('/') => {
                return Err(format!("a valid label key {NAME_RULE}{KEY_RULE}"));
            }
            Some((prefix, name)) => {
                if prefix.is_empty() {
                    broken.push("prefix part must be non-empty".to_owned());
                } else {
                    if prefix.len() > LONGEST_PREFIX {
                        let rule = "prefix part must be no more than 253 bytes";
                        broken.push(rule.to_owned());
                    }
                    if !is_subdomain(prefix) {
                        broken.push(PREFIX_RULE.to_owned());
                    }
                }
                name
            }
        };
        if name.is_empty() {
            broken.push("name part must be non-empty".to_owned());
        } else if name.len() > LONGEST_NAME {
            broken.push("name part must be no more than 63 bytes".to_owned());
        }
        if name.is_empty() || !is_label_text(name) {
            broken.push(format!("name part {NAME_RULE}"));
        }
        all_kept(&broken)
    }

    /// Validates a label value, which may be empty.
    ///
    /// # Errors
    ///
    /// The violated rules, in the API server's words.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::core::Labels;
    ///
    /// assert!(Labels::check_value("").is_ok());
    /// assert!(Labels::check_value("two words").is_err());
    /// ```
    pub fn check_value(value: &str) -> Result<(), String> {
        let mut broken = Vec::new();
        if value.len() > LONGEST_NAME {
            broken.push("must be no more than 63 bytes".to_owned());
        }
        if !is_label_text(value) {
            broken.push(VALUE_RULE.to_owned());
        }
        all_kept(&broken)
    }
}

/// The longest name in a key, and the longest value, in bytes.
const LONGEST_NAME: usize = 63;

/// The longest prefix of a key, in bytes.
const LONGEST_PREFIX: usize = 253;

fn all_kept(broken: &[String]) -> Result<(), String> {
    if broken.is_empty() {
        Ok(())
    } else {
        Err(broken.join("; "))
    }
}

/// Returns whether a text is a valid label value, of any length.
///
/// Characters of `[A-Za-z0-9_.-]`, beginning and ending with a letter or digit.
fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    bytes.iter().all(inner)
        // An empty value is valid; a key is checked for that by the caller.
        && bytes.first().is_none_or(u8::is_ascii_alphanumeric)
        && bytes.last().is_none_or(u8::is_ascii_alphanumeric)
}

/// Returns whether a text is a DNS subdomain, of any length: labels separated by dots.
///
/// Unlike names of hosts, a label may have more than 63 characters, as in `IsDNS1123Subdomain`.
fn is_subdomain(text: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.iter().all(|byte| is_end(byte) || *byte == b'-')
            && bytes.first().is_some_and(is_end)
            && bytes.last().is_some_and(is_end)
    };
    text.split('.').all(is_part)
}

/// The API server's message for an invalid prefix.
const PREFIX_RULE: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The API server's message for an invalid name.
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// What follows the rule for names in the message for a key with several slashes.
const KEY_RULE: &str = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

/// The API server's message for an invalid value.
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut packed = String::new();
        for (key, value) in pairs {
            let (key, value) = (key.as_ref(), value.as_ref());
            // Such a pair would be read as two.
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
            packed: packed.into(),
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
    fn the_prefix_of_a_key_is_a_subdomain() {
        let long = format!("{}.io/name", "a".repeat(64));
        for valid in ["b.io/Name", "b-1.io/n_a.me", &long] {
            assert_eq!(Labels::check_key(valid), Ok(()), "{valid}");
        }
        let name = |rest: &str| format!("name part {rest}");
        let prefix = PREFIX_RULE.to_owned();
        for invalid in ["a..b/x", ".b.io/x", "a_b.io/x", "B.io/x", "b.io-/x"] {
            assert_eq!(Labels::check_key(invalid), Err(prefix.clone()), "{invalid}");
        }
        for (invalid, expected) in [
            (
                format!("{}/name", "a".repeat(254)),
                "prefix part must be no more than 253 bytes".to_owned(),
            ),
            ("/x".to_owned(), "prefix part must be non-empty".to_owned()),
            (
                "a".repeat(64),
                "name part must be no more than 63 bytes".to_owned(),
            ),
            ("b.io/-a".to_owned(), name(NAME_RULE)),
            (
                "b.io/".to_owned(),
                format!("name part must be non-empty; {}", name(NAME_RULE)),
            ),
            (
                "b.io/a/b".to_owned(),
                format!("a valid label key {NAME_RULE}{KEY_RULE}"),
            ),
        ] {
            assert_eq!(Labels::check_key(&invalid), Err(expected), "{invalid}");
        }
        let long = Labels::check_value(&"b".repeat(64));
        assert_eq!(long, Err("must be no more than 63 bytes".to_owned()));
    }

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
