//! Merges maps: directives, retained keys, and what is added where nothing was.

use std::collections::HashSet;

use serde_json::Value;

use super::lookup::{self, unmergeable};
use super::{items, lists, order};
use crate::go_text;
use crate::object::Object;
use crate::patch::PatchError;
use crate::schema::TypeRef;

/// The directive of a map or a list item that is not merged.
pub(super) const DIRECTIVE: &str = "$patch";
/// The members to retain; others are removed.
const RETAIN_KEYS: &str = "$retainKeys";
/// Items to take out of a list of scalars.
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
/// The order of the items of a list.
pub(super) const SET_ORDER: &str = "$setElementOrder";

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
    if let Some(directive) = patch.get(DIRECTIVE).cloned() {
        // `handleDirectiveInMergeMap`. The present map is dropped in any case, so it is not even looked at.
        return carry_out(&directive, patch);
    }
    // First the directives that name members, which take themselves and what they merge out of the patch; the loop
    // below then sees plain members only.
    retain_keys(&mut original, &mut patch)?;
    order::set_orders(typed, &mut original, &mut patch)?;
    for (name, value) in patch {
        // `preprocessDeletionListForMerging`.
        let Some(rest) = name.strip_prefix(DELETE_FROM) else {
            merge_member(typed, &mut original, &name, value, false)?;
            continue;
        };
        match rest.strip_prefix('/') {
            // A directive without a list name is skipped, but one without a slash is an error.
            Some("") => {}
            Some(name) => merge_member(typed, &mut original, name, value, true)?,
            None => return malformed("invalid patch format of primitive list"),
        }
    }
    Ok(original)
}

/// Carries out the directive for a whole map.
fn carry_out(directive: &Value, mut patch: Object) -> Outcome<Object> {
    match directive.as_str() {
        Some("replace") => {
            patch.remove(DIRECTIVE);
            Ok(patch)
        }
        Some("delete") => Ok(Object::new()),
        _ => unknown_directive(directive, &Value::Object(patch)),
    }
}

pub(super) fn unknown_directive<T>(directive: &Value, map: &Value) -> Outcome<T> {
    let shown = go_text::value(directive);
    // Go shows it as a text.
    let shown = match directive {
        Value::Bool(_) | Value::Number(_) => format!("%!s({}={shown})", items::type_of(directive)),
        Value::Null => items::type_of(directive).to_owned(),
        _ => shown,
    };
    let map = go_text::value(map);
    unmergeable(format!("unknown patch type: {shown} in map: {map}"))
}

/// Merges a member of the patch, or takes its items out of a list.
fn merge_member(
    typed: TypeRef<'_>,
    original: &mut Object,
    name: &str,
    value: Value,
    deletes: bool,
) -> Outcome<()> {
    let old = original.remove(name);
    let merged = match (old, value) {
        // A null removes, also where nothing was.
        (_, Value::Null) => None,
        // Only two maps or two lists are merged, so only for these Go looks the member up. An unknown member with a
        // scalar is therefore no error here.
        (Some(Value::Object(old)), Value::Object(new)) => {
            let found = lookup::member(typed, name)?;
            Some(Value::Object(if found.strategy.replace {
                new
            } else {
                merge_map(found.typed, old, new)?
            }))
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            let list = lookup::list(typed, name)?;
            Some(Value::Array(if deletes {
                lists::delete(&list, old, new)?
            } else {
                lists::merge(&list, old, new)?
            }))
        }
        // A deletion from what is no list of the same kind deletes nothing.
        (old, value) if deletes && !are_alike(old.as_ref(), &value) => old,
        (_, value) => taken(value),
    };
    if let Some(merged) = merged {
        original.insert(name.to_owned(), merged);
    }
    Ok(())
}

fn are_alike(old: Option<&Value>, new: &Value) -> bool {
    old.is_some_and(|old| items::type_of(old) == items::type_of(new))
}

/// Drops the members of the original that a patch does not retain.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Outcome<()> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let Value::Array(keys) = keys else {
        return malformed("invalid patch format of retainKeys");
    };
    // Go uses the keys as keys of a map, which panics for these.
    if keys.iter().any(|key| key.is_object() || key.is_array()) {
        return items::crash();
    }
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_kept = |name: &String| keys.contains(name.as_str());
    let is_directive = |name: &String| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    let strays = |(name, value): (&String, &Value)| {
        // A patch that sets a member and does not retain it contradicts itself; one that removes it does not.
        !value.is_null() && !is_kept(name) && !is_directive(name)
    };
    if patch.iter().any(strays) {
        return malformed("invalid patch format of retainKeys");
    }
    original.retain(|name, _| is_kept(name));
    Ok(())
}

/// Returns a patch as a new value: without nulls, and without maps that have a directive.
///
/// Other directives stay, as members that no kind has.
pub(super) fn taken(value: Value) -> Option<Value> {
    without_directives(without_nulls(value))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                kept.map(|(name, value)| (name, without_nulls(value)))
                    .collect(),
            )
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

pub(super) fn without_directives(value: Value) -> Option<Value> {
    Some(match value {
        // Whatever a directive says, there is nothing that it is about.
        Value::Object(object) if object.contains_key(DIRECTIVE) => return None,
        Value::Object(object) => {
            let kept = object
                .into_iter()
                .filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.into_iter().filter_map(without_directives).collect(),
        scalar => scalar,
    })
}
