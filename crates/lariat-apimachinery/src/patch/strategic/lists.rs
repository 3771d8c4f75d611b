//! Merging lists.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::errors::{self, Kind, unmergeable};
use super::maps::{DIRECTIVE, Outcome, SET_ORDER, merge_map, taken};
use crate::object::Object;
use crate::schema::{self, TypeRef};

/// Merges a list of a patch into the present list, or takes scalars out of it.
pub(super) fn merge(
    typed: TypeRef<'_>,
    name: &str,
    (original, patch): (Vec<Value>, Vec<Value>),
    deletes: bool,
) -> Outcome<Vec<Value>> {
    check_field(typed, name)?;
    let strategy = typed.patch(name);
    if !strategy.merge && !deletes {
        return Ok(patch);
    }
    let Some(kind) = errors::kind_of(&original, &patch)? else {
        return Ok(original);
    };
    let item = typed.member(name).unwrap_or(typed.any()).item();
    if kind == Kind::Map {
        let Some(key) = strategy.key else {
            return unmergeable(format!(
                "cannot merge lists without merge key for {}",
                errors::type_kind(item)
            ));
        };
        return merge_maps(item, &key, original, patch);
    }
    if deletes {
        let gone: HashSet<String> = patch.iter().map(Value::to_string).collect();
        let kept = original.into_iter();
        return Ok(kept
            .filter(|each| !gone.contains(&each.to_string()))
            .collect());
    }
    if let Some(wrong) = original
        .iter()
        .chain(&patch)
        .next()
        .filter(|_| strategy.key.is_some())
    {
        return errors::wrong_type(Kind::Map, wrong);
    }
    let mut merged = original.clone();
    let mut known: HashSet<String> = merged.iter().map(Value::to_string).collect();
    let new = patch.iter().filter(|value| known.insert(value.to_string()));
    merged.extend(new.cloned());
    Ok(ordered(merged, &patch, &original, None))
}

/// Merges items that are maps, by the value of a key.
fn merge_maps(
    item: TypeRef<'_>,
    key: &str,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Outcome<Vec<Value>> {
    let (original, patch) = special(original, patch, key)?;
    let mut merged = original.clone();
    let mut places = Places::of(&merged, Some(key)).places;
    for value in &patch {
        let Some((id, new)) = value.get(key).zip(value.as_object()) else {
            return errors::no_key(value, key);
        };
        match places.get(&id.to_string()).map(|at| &mut merged[*at]) {
            Some(Value::Object(old)) => {
                *old = merge_map(item, std::mem::take(old), new.clone())?;
            }
            // Directives in it stay, and are unknown fields later.
            _ => {
                places.entry(id.to_string()).or_insert(merged.len());
                merged.push(value.clone());
            }
        }
    }
    if let Some(nameless) = merged.iter().find(|each| each.get(key).is_none()) {
        return errors::no_key(nameless, key);
    }
    Ok(ordered(merged, &patch, &original, Some(key)))
}

/// Carries out the directives in a list of the patch; returns what is left of both lists.
fn special(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Outcome<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replaces = false;
    let mut deleted = HashSet::new();
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => match item.get(key) {
                Some(id) => {
                    deleted.insert(id.to_string());
                }
                None => return errors::no_key(&item, key),
            },
            Some("replace") => replaces = true,
            Some("merge") => {
                return unmergeable("merging lists cannot yet be specified in the patch");
            }
            _ => return errors::unknown_directive(directive, &item),
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    original.retain(|each| {
        each.get(key)
            .is_none_or(|id| !deleted.contains(&id.to_string()))
    });
    Ok((original, plain))
}

/// Checks that a structure has a field whose values are merged.
pub(super) fn check_field(typed: TypeRef<'_>, name: &str) -> Outcome<()> {
    match schema::struct_without(typed, name) {
        Some(structure) => unmergeable(format!(
            "unable to find api field in struct {structure} for the json field {name:?}"
        )),
        None => Ok(()),
    }
}

/// Merges the lists whose order a patch sets.
///
/// The lists and their orders are removed from the patch.
pub(super) fn set_orders(
    typed: TypeRef<'_>,
    original: &mut Object,
    patch: &mut Object,
) -> Outcome<()> {
    let orders: Vec<String> = patch
        .keys()
        .filter(|k| k.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for directive in orders {
        let name = &directive[SET_ORDER.len()..];
        let order = patch.remove(&directive).unwrap_or_default();
        let order = errors::list(Some(order))?.unwrap_or_default();
        let before = errors::list(original.get(name).cloned())?;
        let new = errors::list(patch.get(name).cloned())?;
        check_field(typed, name)?;
        let key = typed.patch(name).key;
        check_order(&order, new.as_deref().unwrap_or_default(), key.as_deref())?;
        let merged = match (before.clone(), new.clone()) {
            (None, None) => continue,
            (Some(before), None) => before,
            (None, Some(new)) => new.into_iter().filter_map(taken).collect(),
            (Some(before), Some(new)) => merge(typed, name, (before, new), false)?,
        };
        if let Some(key) = key.as_deref() {
            check_keys(&merged, &order, key)?;
        }
        let before = before.unwrap_or_default();
        if errors::kind_of(&before, &new.unwrap_or_default())?.is_none() {
            return unmergeable("no elements in any of the given slices");
        }
        let merged = ordered(merged, &order, &before, key.as_deref());
        original.insert(name.to_owned(), Value::Array(merged));
        patch.remove(name);
    }
    Ok(())
}

/// Checks that a list and its order have the keys by which items are found.
fn check_keys(merged: &[Value], order: &[Value], key: &str) -> Outcome<()> {
    for item in merged {
        if !item.is_object() {
            return errors::wrong_type(Kind::Map, item);
        }
        let Some(id) = item.get(key) else {
            return errors::no_key(item, key);
        };
        for (at, place) in order.iter().enumerate() {
            if !place.is_object() {
                return unmergeable(format!("value for key {at} is not a map"));
            }
            if place.get(key) == Some(id) {
                break;
            }
        }
    }
    Ok(())
}

/// Checks that what a patch adds to a list is in the order it sets.
fn check_order(order: &[Value], patch: &[Value], key: Option<&str>) -> Outcome<()> {
    if order.is_empty() || patch.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        loop {
            let Some(place) = places.next() else {
                return errors::wrong_order(patch, order);
            };
            if is_same(item, place, key)? {
                break;
            }
        }
    }
    Ok(())
}

/// Returns whether two items are the same, by the value of a key if there is one.
fn is_same(left: &Value, right: &Value, key: Option<&str>) -> Outcome<bool> {
    let Some(key) = key else {
        return Ok(left == right);
    };
    for item in [left, right] {
        if !item.is_object() {
            return errors::wrong_type(Kind::Map, item);
        }
    }
    for item in [left, right] {
        if item.get(key).is_none() {
            return errors::no_key(item, key);
        }
    }
    Ok(left.get(key) == right.get(key))
}

/// What identifies an item: the value of its key, or itself.
fn id(item: &Value, key: Option<&str>) -> Option<String> {
    match key {
        Some(key) if item.is_object() => Some(item.get(key)?.to_string()),
        _ => Some(item.to_string()),
    }
}

/// The first index of each item, by its key.
struct Places<'a> {
    places: HashMap<String, usize>,
    key: Option<&'a str>,
}

impl<'a> Places<'a> {
    fn of(list: &[Value], key: Option<&'a str>) -> Self {
        let mut places = HashMap::with_capacity(list.len());
        for (at, item) in list.iter().enumerate() {
            if let Some(id) = id(item, key) {
                places.entry(id).or_insert(at);
            }
        }
        Self { places, key }
    }

    fn get(&self, item: &Value) -> Option<usize> {
        self.places.get(&id(item, self.key)?).copied()
    }
}

/// Orders a merged list.
///
/// Items of the patch keep the order of the patch, others the order of the server; between the two, the server's order
/// decides where it has both.
fn ordered(merged: Vec<Value>, patch: &[Value], server: &[Value], key: Option<&str>) -> Vec<Value> {
    let (patched, served) = (Places::of(patch, key), Places::of(server, key));
    let (mut named, mut rest): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| patched.get(item).is_some());
    named.sort_by_cached_key(|item| patched.get(item));
    rest.sort_by_cached_key(|item| served.get(item));
    let mut out = Vec::with_capacity(named.len() + rest.len());
    let (mut named, mut rest) = (named.into_iter().peekable(), rest.into_iter().peekable());
    while let (Some(left), Some(right)) = (rest.peek(), named.peek()) {
        let places = (served.get(left), served.get(right));
        let rest_first = matches!(places, (Some(left), Some(right)) if left < right);
        out.extend(if rest_first {
            rest.next()
        } else {
            named.next()
        });
    }
    out.extend(rest);
    out.extend(named);
    out
}
