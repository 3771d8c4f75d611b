//! Carries the change of a typed value over to the raw object it was read from.

use serde_json::{Map, Value};

/// Fields that identify an element of a list, most telling first.
const IDENTITIES: [&str; 5] = ["name", "key", "type", "uid", "containerPort"];

/// Returns the raw value with the difference between two typed values.
///
/// What is the same in both stays as it is in the raw value, which may lack it where the type has a default.
pub(super) fn over(raw: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return raw.clone();
    }
    match (raw, before, after) {
        (Value::Object(raw), Value::Object(before), Value::Object(after)) => {
            Value::Object(over_object(raw, before, after))
        }
        (Value::Array(raw), Value::Array(before), Value::Array(after))
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
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        wanted.remove(name);
    }
    for (name, value) in after {
        let old = before.get(name);
        if old == Some(value) {
            continue;
        }
        let carried = match (raw.get(name), old) {
            (Some(raw), Some(old)) => over(raw, old, value),
            _ => value.clone(),
        };
        wanted.insert(name.clone(), carried);
    }
    wanted
}

/// Carries over a list, each of whose elements is that of the raw list at the same index.
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

/// Returns for every element which one it was before: an equal one, one of its name, or that of its index.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut origins = vec![None; after.len()];
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
            // An element with another name is another element.
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
