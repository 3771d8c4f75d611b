//! What identifies the items of a list.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::managed::path::Step;
use crate::schema::{ListKind, TypeRef};

/// Returns the step to an item of a list that is not atomic.
pub(super) fn step_to(kind: &ListKind, item: TypeRef<'_>, value: &Value) -> Result<Step, String> {
    match kind {
        ListKind::Set => match value {
            Value::Array(_) | Value::Object(_) => {
                Err("associative lists as values are not supported".to_owned())
            }
            _ => Ok(Step::value(value)),
        },
        ListKind::Map(keys) => keyed(keys, item, value),
        ListKind::Atomic => Err("an atomic list has no items of its own".to_owned()),
    }
}

fn keyed(keys: &[Cow<'static, str>], item: TypeRef<'_>, value: &Value) -> Result<Step, String> {
    let Value::Object(members) = value else {
        return Err("associative list with keys may not have non-map elements".to_owned());
    };
    let mut found = Map::new();
    for key in keys {
        let default = || item.field(key)?.default.clone();
        if let Some(value) = members.get(&**key).cloned().or_else(default) {
            found.insert(key.clone().into_owned(), value);
        }
    }
    if found.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits key field {:?} (and doesn't have \
             default value)",
            keys.first().map_or("", |key| key)
        ));
    }
    Ok(Step::keys(found))
}

/// Gathers the items of a list by the steps to them, in order; what cannot be identified is left out.
pub(super) fn by_step<'a>(
    kind: &ListKind,
    item: TypeRef<'_>,
    values: &'a [Value],
) -> Vec<(Step, Vec<&'a Value>)> {
    let mut gathered: Vec<(Step, Vec<&Value>)> = Vec::with_capacity(values.len());
    for value in values {
        let Ok(step) = step_to(kind, item, value) else {
            continue;
        };
        match gathered.iter_mut().find(|(known, _)| *known == step) {
            Some((_, values)) => values.push(value),
            None => gathered.push((step, vec![value])),
        }
    }
    gathered
}
