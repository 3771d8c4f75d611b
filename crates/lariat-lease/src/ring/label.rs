//! Divides objects by the value of a label.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_core::{LabelSelector, Labels, ObjectMetadata};

use super::share::ShardKey;

/// A label whose values are divided among the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShardLabel {
    /// The label's key.
    key: Arc<str>,
    /// The values.
    values: Arc<BTreeSet<String>>,
}

impl ShardLabel {
    /// Creates a label from its key and values.
    pub(super) fn new<V: Into<String>>(key: &str, values: impl IntoIterator<Item = V>) -> Self {
        Self {
            key: key.into(),
            values: Arc::new(values.into_iter().map(Into::into).collect()),
        }
    }

    /// Returns a text that identifies key and values.
    pub(super) fn division(&self) -> String {
        let values: Vec<&str> = self.values.iter().map(String::as_str).collect();
        let hash = ShardKey::of_label(&self.key, &values.join(","));
        format!("{}/{}/{hash:x}", self.key, values.len())
    }

    /// Checks key and values as the API server checks labels.
    pub(super) fn check(&self) -> Result<(), String> {
        let key = &self.key;
        Labels::check_key(key).map_err(|rule| format!("the label {key:?} is invalid: {rule}"))?;
        if self.values.is_empty() {
            return Err(format!("the label {key:?} has no values to divide"));
        }
        for value in self.values.iter() {
            Labels::check_value(value).map_err(|rule| {
                format!("the value {value:?} of the label {key:?} is invalid: {rule}")
            })?;
        }
        Ok(())
    }

    /// Returns the key of an object's value; `None` if it has none of the values.
    pub(super) fn key_of(&self, object: &ObjectMetadata) -> Option<ShardKey> {
        let value = object.labels().get(&self.key)?;
        let is_divided = self.values.contains(value);
        is_divided.then(|| ShardKey::of_label(&self.key, value))
    }

    /// Returns the keys of the selected values.
    pub(super) fn keys(&self, is_selected: impl Fn(ShardKey) -> bool) -> BTreeSet<ShardKey> {
        let keys = self.values.iter();
        keys.map(|value| ShardKey::of_label(&self.key, value))
            .filter(|key| is_selected(*key))
            .collect()
    }

    /// Returns a selector of the objects with some of the values.
    pub(super) fn selector(&self, keys: &BTreeSet<ShardKey>) -> LabelSelector {
        let values = self.values.iter();
        let selected = values.filter(|value| keys.contains(&ShardKey::of_label(&self.key, value)));
        let selected: Vec<&str> = selected.map(String::as_str).collect();
        let key = &self.key;
        let text = if selected.is_empty() {
            // `in ()` would select the empty value. This contradicts itself instead: no object has a label and lacks
            // it.
            format!("{key},!{key}")
        } else {
            format!("{key} in ({})", selected.join(","))
        };
        text.parse().expect("key and values were checked")
    }
}

#[cfg(test)]
mod tests {
    use lariat_core::{Gvk, RawObject};

    use super::*;

    fn object(labels: &str) -> RawObject {
        let json = format!(
            r#"{{"metadata":{{"name":"a","namespace":"n","resourceVersion":"1","uid":"u","labels":{labels}}}}}"#
        );
        RawObject::parse(json.as_bytes(), &Gvk::new("", "v1", "ConfigMap")).expect("an object")
    }

    #[test]
    fn other_keys_or_values_are_another_division() {
        let division =
            |key, values: &[&str]| ShardLabel::new(key, values.iter().copied()).division();
        let own = division("shard", &["0", "1"]);
        assert_eq!(own, division("shard", &["1", "0", "1"]));
        assert_ne!(own, division("shard", &["0", "2"]));
        assert_ne!(own, division("shards", &["0", "1"]));
    }

    #[test]
    fn only_divided_values_have_a_member() {
        let label = ShardLabel::new("shop/shard", ["0", "1"]);
        let key_of = |labels| label.key_of(&object(labels));
        let key = key_of(r#"{"shop/shard":"0"}"#);
        assert_eq!(key, Some(ShardKey::of_label("shop/shard", "0")));
        assert_ne!(key, key_of(r#"{"shop/shard":"1"}"#));
        assert_eq!(key_of(r#"{"shop/shard":"2"}"#), None);
        assert_eq!(key_of(r#"{"shard":"0"}"#), None);
    }

    #[test]
    fn the_selector_selects_what_was_chosen_and_nothing_if_that_is_nothing() {
        let label = ShardLabel::new("shard", ["0", "1", "2"]);
        let one = ShardKey::of_label("shard", "1");
        let some = label.selector(&label.keys(|key| key != one));
        assert_eq!(some.to_string(), "shard in (0,2)");
        let none = label.selector(&BTreeSet::new());
        for labels in ["{}", r#"{"shard":"1"}"#, r#"{"shard":""}"#] {
            assert!(!none.matches(object(labels).labels()), "{labels}");
        }
    }

    #[test]
    fn what_no_label_can_be_is_refused() {
        let values: [&str; 0] = [];
        assert!(ShardLabel::new("shard", values).check().is_err());
        assert!(ShardLabel::new("not a key", ["0"]).check().is_err());
        let error = ShardLabel::new("shard", ["0", "a b"]).check().unwrap_err();
        assert!(error.contains("\"a b\""), "{error}");
        assert_eq!(ShardLabel::new("shard", ["0", ""]).check(), Ok(()));
    }
}
