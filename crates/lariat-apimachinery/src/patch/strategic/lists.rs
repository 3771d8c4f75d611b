//! Merging lists.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::maps::{DELETE_FROM, DIRECTIVE, Outcome, SET_ORDER, malformed, merge_map, taken};
use crate::go_text::value as go;
use crate::object::Object;
use crate::patch::PatchError;
use crate::schema::{self, TypeRef};

/// Merges a list of a patch into the present list.
pub(super) fn merge(
    typed: TypeRef<'_>,
    name: &str,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Outcome<Vec<Value>> {
    let strategy = typed.patch(name);
    if !strategy.merge {
        return Ok(patch);
    }
    let item = typed.member(name).unwrap_or(typed.any()).item();
    let are_maps = original.iter().chain(&patch).any(Value::is_object);
    if !are_maps {
        let mut merged = original.clone();
        let mut known: HashSet<String> = merged.iter().map(Value::to_string).collect();
        let new = patch.iter().filter(|value| known.insert(value.to_string()));
        merged.extend(new.cloned());
        return Ok(ordered(merged, &patch, &original, None));
    }
    let Some(key) = strategy.key else {
        return Err(PatchError::Unmergeable(format!(
            "cannot merge lists without merge key for {name}"
        )));
    };
    let (original, patch) = special(original, patch, &key)?;
    let mut merged = original.clone();
    let mut places = Places::of(&merged, Some(&key)).places;
    for value in &patch {
        let Value::Object(new) = value else {
            return malformed(format!("{name} has items that are maps and others"));
        };
        let Some(id) = new.get(&*key) else {
            return Err(PatchError::Unmergeable(format!(
                "map: {} does not contain declared merge key: {key}",
                go(value)
            )));
        };
        match places.get(&id.to_string()).map(|at| &mut merged[*at]) {
            Some(Value::Object(old)) => {
                *old = merge_map(item, std::mem::take(old), new.clone())?;
            }
            _ => {
                if let Some(taken) = taken(value.clone()) {
                    places.entry(id.to_string()).or_insert(merged.len());
                    merged.push(taken);
                }
            }
        }
    }
    Ok(ordered(merged, &patch, &original, Some(&key)))
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
    for mut item in patch {
        let directive = item.as_object_mut().and_then(|item| item.remove(DIRECTIVE));
        match directive.as_ref().map(Value::as_str) {
            None => plain.push(item),
            Some(Some("delete")) => {
                let Some(id) = item.get(key) else {
                    return malformed(format!("an item to delete has no merge key {key}"));
                };
                deleted.insert(id.to_string());
            }
            Some(Some("replace")) => {
                replaces = true;
                if item.as_object().is_some_and(|item| !item.is_empty()) {
                    plain.push(item);
                }
            }
            Some(Some("merge")) => return malformed("merging lists cannot yet be done explicitly"),
            Some(_) => return malformed(format!("unknown {DIRECTIVE} in an item")),
        }
    }
    if !deleted.is_empty() {
        original.retain(|each| {
            each.get(key)
                .is_none_or(|id| !deleted.contains(&id.to_string()))
        });
    }
    Ok(if replaces {
        (plain, Vec::new())
    } else {
        (original, plain)
    })
}

/// Takes scalars out of a list.
pub(super) fn delete_from(original: &mut Object, name: &str, gone: &Value) -> Outcome<()> {
    let Value::Array(gone) = gone else {
        return malformed(format!("{DELETE_FROM}{name} must be a list"));
    };
    if let Some(Value::Array(items)) = original.get_mut(name) {
        let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
        items.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
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
        let name = directive[SET_ORDER.len()..].to_owned();
        let Some(Value::Array(order)) = patch.remove(&directive) else {
            return malformed(format!("{directive} must be a list"));
        };
        if let Some(structure) = schema::struct_without(typed, &name) {
            return Err(PatchError::Unmergeable(format!(
                "unable to find api field in struct {structure} for the json field {name:?}"
            )));
        }
        let key = typed.patch(&name).key;
        check_order(&order, patch.get(&name), key.as_deref(), &name)?;
        let old = match original.remove(&name) {
            Some(Value::Array(items)) => Some(items),
            _ => None,
        };
        let new = match patch.get(&name) {
            Some(Value::Array(_)) => patch.remove(&name).and_then(|items| match items {
                Value::Array(items) => Some(items),
                _ => None,
            }),
            _ => None,
        };
        if let Some(deleted) = patch.remove(&format!("{DELETE_FROM}{name}")) {
            let mut holder = Object::new();
            holder.insert(name.clone(), old.clone().unwrap_or_default().into());
            delete_from(&mut holder, &name, &deleted)?;
            original.insert(name.clone(), holder.remove(&name).unwrap_or_default());
        }
        let before = match original.remove(&name) {
            Some(Value::Array(items)) => Some(items),
            _ => old,
        };
        let merged = match (before.clone(), new) {
            (None, None) => continue,
            (Some(before), None) => before,
            (None, Some(new)) => new.into_iter().filter_map(taken).collect(),
            (Some(before), Some(new)) => merge(typed, &name, before, new)?,
        };
        let before = before.unwrap_or_default();
        let merged = ordered(merged, &order, &before, key.as_deref());
        original.insert(name, Value::Array(merged));
    }
    Ok(())
}

/// Checks that what a patch adds to a list is in the order it sets.
fn check_order(
    order: &[Value],
    patch: Option<&Value>,
    key: Option<&str>,
    name: &str,
) -> Outcome<()> {
    let items = patch.and_then(Value::as_array).into_iter().flatten();
    let is_special = |item: &&Value| item.get(DIRECTIVE).is_some();
    let places = Places::of(order, key);
    let missing = |item: &&Value| places.get(item).is_none();
    match items.filter(|item| !is_special(item)).find(missing) {
        Some(_) => malformed(format!("an item of {name} is not in {SET_ORDER}{name}")),
        None => Ok(()),
    }
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
