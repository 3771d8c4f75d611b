//! Merges maps: directives, retained keys, and what is added where nothing was.

use std::collections::HashSet;

use serde_json::Value;

use super::lists;
use crate::go_text;
use crate::object::Object;
use crate::patch::PatchError;
use crate::schema::{PatchStrategy, TypeRef};

/// The directive of a map or a list item that is not merged.
pub(super) const DIRECTIVE: &str = "$patch";
/// The members to retain; others are removed.
const RETAIN_KEYS: &str = "$retainKeys";
/// Items to take out of a list of scalars.
pub(super) const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
/// The order of the items of a list.
pub(super) const SET_ORDER: &str = "$setElementOrder/";

pub(super) type Outcome<T> = Result<T, PatchError>;

pub(super) fn malformed<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(PatchError::Malformed(reason.into()))
}

/// Merges a patch into an object.
pub(in crate::patch) fn apply(
    typed: TypeRef<'_>,
    original: Object,
    patch: &Object,
) -> Outcome<Object> {
    merge_map(typed, original, patch.clone())
}

pub(super) fn merge_map(
    typed: TypeRef<'_>,
    mut original: Object,
    mut patch: Object,
) -> Outcome<Object> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Object::new()),
            _ => {
                patch.insert(DIRECTIVE.to_owned(), directive.clone());
                Err(PatchError::Unmergeable(format!(
                    "unknown patch type: {} in map: {}",
                    go_text::value(&directive),
                    go_text::value(&Value::Object(patch))
                )))
            }
        };
    }
    retain_keys(&mut original, &mut patch)?;
    lists::set_orders(typed, &mut original, &mut patch)?;
    for (name, value) in patch {
        if let Some(name) = name.strip_prefix(DELETE_FROM) {
            lists::delete_from(&mut original, name, &value)?;
            continue;
        }
        if value.is_null() {
            original.remove(&name);
            continue;
        }
        let merged = match (original.remove(&name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let below = typed.member(&name).unwrap_or(typed.any());
                Value::Object(if replaces(&typed.patch(&name)) {
                    without_nulls(new)
                } else {
                    merge_map(below, old, new)?
                })
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                Value::Array(lists::merge(typed, &name, old, new)?)
            }
            (_, value) => match taken(value) {
                Some(value) => value,
                None => continue,
            },
        };
        original.insert(name, merged);
    }
    Ok(original)
}

fn replaces(patch: &PatchStrategy) -> bool {
    patch.replace && !patch.merge
}

/// Drops the members of the original that a patch does not retain.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Outcome<()> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(keys) = keys else {
        return malformed("invalid patch format of retainKeys");
    };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_kept = |name: &String| keys.contains(name.as_str());
    let is_directive = |name: &String| name.starts_with('$');
    let strays = |(name, value): (&String, &Value)| {
        !value.is_null() && !is_kept(name) && !is_directive(name)
    };
    if patch.iter().any(strays) {
        return malformed("invalid patch format of retainKeys");
    }
    original.retain(|name, _| is_kept(name));
    Ok(())
}

/// Returns a patch as a new value: without nulls and directives.
pub(super) fn taken(value: Value) -> Option<Value> {
    Some(match value {
        // Whatever a directive says, there is nothing that it is about.
        Value::Object(object) if object.contains_key(DIRECTIVE) => return None,
        Value::Object(object) => {
            let is_kept = |name: &str, value: &Value| {
                let is_directive = name == RETAIN_KEYS
                    || name.starts_with(DELETE_FROM)
                    || name.starts_with(SET_ORDER);
                !value.is_null() && !is_directive
            };
            let members = object
                .into_iter()
                .filter(|(name, value)| is_kept(name, value));
            let kept = members.filter_map(|(name, value)| Some((name, taken(value)?)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.into_iter().filter_map(taken).collect(),
        scalar => scalar,
    })
}

fn without_nulls(object: Object) -> Object {
    object
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect()
}
