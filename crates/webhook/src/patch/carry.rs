//! Carries the changes of a typed value over to the JSON from which it was read.

use serde_json::{Map, Value};

/// Fields that identify an element of a list, the most specific ones first.
const IDENTITIES: [&str; 5] = ["name", "key", "type", "uid", "containerPort"];

/// Returns the raw value with the changes between two typed values.
///
/// Parts that are equal in both typed values stay as they are in the raw value, which may lack them where the type has
/// a default.
pub(super) fn over(raw: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return raw.clone();
    }
    match (raw, before, after) {
        (Value::Object(raw), Value::Object(before), Value::Object(after)) => {
            Value::Object(over_object(raw, before, after))
        }
        (Value::Array(raw), Value::Array(before), Value::Array(after))
            // Serializing the type may drop or add elements. Then the indexes say nothing, and the list is replaced.
            if raw.len() == before.len() =>
        {
            Value::Array(over_list(raw, before, after))
        }
        _ => after.clone(),
    }
}

fn over_object(
    raw: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let mut wanted = raw.clone();
    // Removed by the handler. Members that only the raw object has are not in `before`, and stay.
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        wanted.remove(name);
    }
    for (name, value) in after {
        let old = before.get(name);
        if old == Some(value) {
            continue;
        }
        // A member that the raw object lacks was a default of the type. It is written as a whole once the handler
        // changes it.
        let carried = match (raw.get(name), old) {
            (Some(raw), Some(old)) => over(raw, old, value),
            _ => value.clone(),
        };
        wanted.insert(name.clone(), carried);
    }
    wanted
}

/// Carries the changes of a list over.
///
/// The elements of `raw` and `before` correspond by index.
fn over_list(raw: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let origins = origins(before, after);
    let carried = after
        .iter()
        .zip(origins)
        .map(|(value, origin)| match origin {
            Some(index) => over(&raw[index], &before[index], value),
            None => value.clone(),
        });
    carried.collect()
}

/// Returns, for every element, the index of its former state.
///
/// An equal element comes first, then one with the same name, then the one at the same index.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut origins = vec![None; after.len()];
    // Three passes from certain to uncertain matches. An element that is taken by one pass is not available to the
    // next.
    let mut is_taken = vec![false; before.len()];
    let mut find = |origins: &mut [Option<usize>], is_it: &dyn Fn(&Value, &Value) -> bool| {
        for (origin, value) in origins.iter_mut().zip(after) {
            if origin.is_some() {
                continue;
            }
            let found = before
                .iter()
                .enumerate()
                .position(|(index, old)| !is_taken[index] && is_it(old, value));
            if let Some(index) = found {
                is_taken[index] = true;
                *origin = Some(index);
            }
        }
    };
    // Equal elements first: a moved element keeps the fields that only its raw state has.
    find(&mut origins, &|old, value| old == value);
    for identity in IDENTITIES {
        find(&mut origins, &|old, value| {
            let own = value.get(identity);
            own.is_some() && own == old.get(identity)
        });
    }
    if before.len() == after.len() {
        let by_index = origins.iter_mut().enumerate();
        for (index, origin) in by_index.filter(|(_, origin)| origin.is_none()) {
            // An element with another name is another element, even at the same index.
            if !is_taken[index] && !is_named(&after[index]) {
                *origin = Some(index);
            }
        }
    }
    origins
}

fn is_named(value: &Value) -> bool {
    IDENTITIES
        .iter()
        .any(|identity| value.get(identity).is_some())
}
