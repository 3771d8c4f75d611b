//! Merges maps: directives, retained keys, and what is added where nothing was.

use std::collections::HashSet;

use serde_json::Value;

use super::errors::{self, Kind};
use super::lists;
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
                errors::unknown_directive(&directive, &Value::Object(patch))
            }
        };
    }
    retain_keys(&mut original, &mut patch)?;
    lists::set_orders(typed, &mut original, &mut patch)?;
    for (name, value) in patch {
        let list = name.strip_prefix(DELETE_FROM).map(str::to_owned);
        let deletes = list.is_some();
        let name = list.unwrap_or(name);
        if value.is_null() {
            original.remove(&name);
            continue;
        }
        let old = original.remove(&name);
        // There is nothing of that kind to delete from.
        if deletes && old.as_ref().map(Kind::of) != Some(Kind::of(&value)) {
            original.extend(old.map(|old| (name, old)));
            continue;
        }
        let merged = match (old, value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                lists::check_field(typed, &name)?;
                let below = typed.member(&name).unwrap_or(typed.any());
                Some(Value::Object(if replaces(&typed.patch(&name)) {
                    without_nulls(new)
                } else {
                    merge_map(below, old, new)?
                }))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let merged = lists::merge(typed, &name, (old, new), deletes)?;
                Some(Value::Array(merged))
            }
            (_, value) => taken(value),
        };
        original.extend(merged.map(|merged| (name, merged)));
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
    let is_directive = |name: &String| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    let strays = |(name, value): (&String, &Value)| {
        !value.is_null() && !is_kept(name) && !is_directive(name)
    };
    if patch.iter().any(strays) {
        return malformed("invalid patch format of retainKeys");
    }
    original.retain(|name, _| is_kept(name));
    Ok(())
}

/// Returns a patch as a new value: without nulls, and without maps that are about something else.
///
/// Other directives stay, and are unknown fields later.
pub(super) fn taken(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => return None,
        Value::Object(object) => {
            let members = object.into_iter().filter(|(_, value)| !value.is_null());
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
