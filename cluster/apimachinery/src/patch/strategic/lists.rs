//! Merging lists.

use std::collections::HashSet;

use serde_json::Value;

use super::items::{self, Places, id};
use super::lookup::{self, Member, unmergeable};
use super::maps::{DIRECTIVE, Outcome, merge_map, unknown_directive};
use super::order::{Keyed, ordered};
use crate::schema::TypeRef;

/// Merges a list of a patch into the present list.
pub(super) fn merge(
    list: &Member<'_>,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Outcome<Vec<Value>> {
    // Without the strategy `merge`, which most lists lack, the patch's list replaces the present one. Its directives
    // are not looked at then.
    if !list.strategy.merge {
        return Ok(patch);
    }
    // `are_maps` needs an item to look at.
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = list.strategy.key.as_deref();
    if items::are_maps(&original, &patch)? {
        return merge_maps(list, original, patch);
    }
    // `deduplicateScalars`: of equal scalars the first one stays, and JSON text tells 1 from "1".
    let mut known: HashSet<String> = HashSet::new();
    let all = original.iter().chain(&patch);
    let merged = all.filter(|value| known.insert(value.to_string()));
    let merged = merged.cloned().collect();
    let keyed = Keyed { key, maps: false };
    ordered(merged, &patch, &original, keyed)
}

/// Deletes items of a list; one of maps is merged instead, as Go does.
pub(super) fn delete(
    list: &Member<'_>,
    mut original: Vec<Value>,
    gone: Vec<Value>,
) -> Outcome<Vec<Value>> {
    if original.is_empty() && gone.is_empty() {
        return Ok(original);
    }
    if items::are_maps(&original, &gone)? {
        return merge_maps(list, original, gone);
    }
    let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
    original.retain(|item| !gone.contains(&item.to_string()));
    Ok(original)
}

fn merge_maps(list: &Member<'_>, original: Vec<Value>, patch: Vec<Value>) -> Outcome<Vec<Value>> {
    let Some(key) = list.strategy.key.as_deref() else {
        return unmergeable(format!(
            "cannot merge lists without merge key for {}",
            lookup::kind_of(list.typed)
        ));
    };
    let (original, patch) = special(original, patch, key)?;
    // The original is still needed: its order decides the order of the merged items.
    let merged = merge_items(list.typed, original.clone(), &patch, key)?;
    let keyed = Keyed {
        key: Some(key),
        maps: true,
    };
    ordered(merged, &patch, &original, keyed)
}

/// Merges items that have no directives.
fn merge_items(
    typed: TypeRef<'_>,
    mut merged: Vec<Value>,
    patch: &[Value],
    key: &str,
) -> Outcome<Vec<Value>> {
    let mut places = Places::of(&merged, Some(key));
    for new in patch {
        let id = id(new, Some(key))?;
        match places.find(id)? {
            Some(at) => {
                let old = merged[at].as_object_mut().map(std::mem::take);
                let new = items::members(new)?.clone();
                merged[at] = Value::Object(merge_map(typed, old.unwrap_or_default(), new)?);
            }
            // An item that the list did not have is taken as it is, without the cleaning of `taken`. That is what Go
            // does.
            None => {
                places.add(id, merged.len());
                merged.push(new.clone());
            }
        }
    }
    Ok(merged)
}

/// Executes the directives in a list of the patch; returns the rest of both lists.
fn special(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Outcome<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replaces = false;
    let mut deleted = HashSet::new();
    let places = Places::of(&original, Some(key));
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let id = id(&item, Some(key))?;
                // Looking for it may fail.
                places.find(id)?;
                deleted.insert(id.to_string());
            }
            // The rest is still read, because other directives have to go or fail.
            Some("replace") => replaces = true,
            Some("merge") => {
                return unmergeable("merging lists cannot yet be specified in the patch");
            }
            _ => return unknown_directive(directive, &item),
        }
    }
    if replaces {
        // As the new original with nothing to merge: the patch's items are the whole list.
        return Ok((plain, Vec::new()));
    }
    if !deleted.is_empty() {
        let is_gone = |id: &Value| deleted.contains(&id.to_string());
        // All at once instead of one search for each deletion, which is what `deleteMatchingEntries` does.
        original.retain(|each| !each.get(key).is_some_and(is_gone));
    }
    Ok((original, plain))
}
