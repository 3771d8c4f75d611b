//! Drafts with placeholders, from which many similar objects are made.

use lariat_core::ObjectKey;

use super::object::Draft;

/// The first byte of a placeholder.
///
/// Names cannot have it, and JSON needs no escape for it.
const PLACEHOLDER: u8 = 0x7f;

impl Draft {
    /// Returns a placeholder for a string, until the draft is [filled](Self::fill).
    ///
    /// There can be as many as digits and small letters: 36.
    pub(crate) fn placeholder(at: usize) -> String {
        let number = u32::try_from(at).ok();
        let digit = number.and_then(|at| char::from_digit(at, 36));
        [char::from(PLACEHOLDER), digit.unwrap_or_default()]
            .iter()
            .collect()
    }

    /// Returns a draft with values in place of the placeholders.
    ///
    /// The values need no escapes in JSON.
    ///
    /// Objects that differ in few values cost a copy then instead of an encoding. Labels have no placeholders.
    pub(crate) fn fill(&self, values: &[&str]) -> Self {
        let text =
            |text: &str| String::from_utf8_lossy(&filled(text.as_bytes(), values)).into_owned();
        let (metadata, content) = self.after.split_at(self.metadata_after);
        // The values are longer or shorter than the placeholders, so where the metadata ends is counted again.
        let mut after = filled(metadata, values);
        let metadata_after = after.len();
        after.extend_from_slice(&filled(content, values));
        let namespace = text(self.key.namespace().unwrap_or_default());
        Self {
            key: ObjectKey::namespaced(&namespace, &text(self.key.name())),
            uid: text(&self.uid).into(),
            labels: self.labels.clone(),
            deleting: self.deleting,
            has_finalizers: self.has_finalizers,
            head: self.head.clone(),
            before: filled(&self.before, values),
            after,
            metadata_after,
        }
    }

    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }
}

fn filled(text: &[u8], values: &[&str]) -> Vec<u8> {
    // What is before the first placeholder has no digit; every other part begins with that of its placeholder.
    let mut parts = text.split(|byte| *byte == PLACEHOLDER);
    let mut filled = Vec::with_capacity(text.len() + 32 * values.len());
    filled.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        let (digit, rest) = part.split_first().unwrap_or((&0, &[]));
        let at = char::from(*digit).to_digit(36);
        let value = at.and_then(|at| values.get(at as usize));
        filled.extend_from_slice(value.copied().unwrap_or_default().as_bytes());
        filled.extend_from_slice(rest);
    }
    filled
}
