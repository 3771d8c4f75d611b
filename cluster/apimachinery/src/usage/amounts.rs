//! Amounts of resources, by their names.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::object::Object;
use crate::quantity::Quantity;

/// Amounts of resources, by their names: a `ResourceList`.
///
/// ```
/// use lariat_apimachinery::usage::Amounts;
/// use serde_json::json;
///
/// let mut used = Amounts::read(&json!({"cpu": "500m", "memory": "1Gi"}));
/// used.add(&Amounts::read(&json!({"cpu": "1"})));
/// assert_eq!(used.json(), json!({"cpu": "1500m", "memory": "1Gi"}));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, Quantity>);

impl Amounts {
    /// Reads a `ResourceList`; invalid quantities are left out.
    #[must_use]
    pub fn read(list: &Value) -> Self {
        let members = list.as_object().into_iter().flatten();
        let amounts = members.filter_map(|(name, amount)| {
            let text = match amount {
                Value::String(text) => text.clone(),
                // Objects that were stored before canonicalization, and those in tests, may have numbers.
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            Some((name.clone(), Quantity::parse(&text)?))
        });
        Self(amounts.collect())
    }

    /// Returns the `ResourceList` as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let members = self.0.iter();
        let members: Object = members
            .map(|(name, amount)| (name.clone(), amount.to_string().into()))
            .collect();
        Value::Object(members)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds other amounts to these.
    pub fn add(&mut self, others: &Self) {
        for (name, amount) in &others.0 {
            let sum = self
                .0
                .get(name)
                .map_or(*amount, |known| known.plus(*amount));
            self.0.insert(name.clone(), sum);
        }
    }

    pub(super) fn one(&mut self, name: &str) {
        self.whole(name, 1);
    }

    pub(super) fn whole(&mut self, name: &str, count: usize) {
        self.0
            .insert(name.to_owned(), Quantity::whole_number(count));
    }

    pub(super) fn set(&mut self, name: &str, amount: Quantity) {
        self.0.insert(name.to_owned(), amount);
    }

    pub(super) fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), *amount))
    }

    /// Raises each amount to at least the other one.
    pub(super) fn at_least(&mut self, others: &Self) {
        for (name, amount) in &others.0 {
            let most = self
                .0
                .get(name)
                .map_or(*amount, |known| (*known).max(*amount));
            self.0.insert(name.clone(), most);
        }
    }

    /// Keeps only the resources of some names.
    pub(super) fn only(&self, keep: impl Fn(&str) -> bool) -> Self {
        let kept = self.0.iter().filter(|(name, _)| keep(name));
        Self(kept.map(|(name, amount)| (name.clone(), *amount)).collect())
    }

    /// Returns the amounts by which these exceed others.
    pub(super) fn above(&self, others: &Self) -> Self {
        let more = self.0.iter().filter_map(|(name, amount)| {
            let before = others.get(name).unwrap_or(Quantity::ZERO);
            // An amount that shrinks is no demand on a quota, so it does not appear.
            let more = amount.minus(before);
            (more > Quantity::ZERO).then(|| (name.clone(), more))
        });
        Self(more.collect())
    }
}

/// As the API server prints them: `cpu=1,pods=2`.
impl fmt::Display for Amounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, amount)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{name}={amount}")?;
        }
        Ok(())
    }
}
