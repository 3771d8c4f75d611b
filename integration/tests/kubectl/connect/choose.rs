//! Choices by weight.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Chooses an option by its weight.
pub(super) fn pick<T>(rng: &mut Rng, options: impl IntoIterator<Item = (u32, T)>) -> T {
    let mut options: Vec<_> = options.into_iter().collect();
    let all: u32 = options.iter().map(|(weight, _)| weight).sum();
    let mut at = rng.u32(..all);
    let chosen = options.iter().position(|(weight, _)| {
        let is_here = at < *weight;
        at = at.saturating_sub(*weight);
        is_here
    });
    options
        .swap_remove(chosen.expect("the weights are added"))
        .1
}

/// Sets a member: mostly not, else to nothing, `null` or a value.
pub(super) fn set(
    rng: &mut Rng,
    members: &mut Map<String, Value>,
    name: &str,
    weight: u32,
    value: impl Into<Value>,
) -> bool {
    let value = value.into();
    let chosen = pick(
        rng,
        [
            (70, None),
            (8, Some(json!(""))),
            (5, Some(Value::Null)),
            (weight, Some(value.clone())),
        ],
    );
    let is_set = chosen.as_ref() == Some(&value);
    if let Some(value) = chosen {
        members.insert(name.to_owned(), value);
    }
    is_set
}
