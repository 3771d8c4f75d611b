//! Merging lists.

use serde_json::Value;

use super::print::go;
use super::{
    DELETE_FROM, DIRECTIVE, Error, Object, Outcome, SET_ORDER, malformed, merge_map, taken,
};
use crate::schema::TypeRef;

/// Merges a list of a patch into the list that is there.
pub(super) fn merge(
    typed: TypeRef<'_>,
    name: &str,
    original: Vec<Value>,
    patch: Vec<Value>,
) -> Outcome<Vec<Value>> {
    let strategy = typed.patch(name);
    if !strategy.merge {
        return match taken(Value::Array(patch))? {
            Some(Value::Array(items)) => Ok(items),
            _ => Ok(Vec::new()),
        };
    }
    let item = typed.member(name).unwrap_or(typed.any()).item();
    let are_maps = original.iter().chain(&patch).any(Value::is_object);
    if !are_maps {
        let mut merged = original.clone();
        for value in &patch {
            if !merged.contains(value) {
                merged.push(value.clone());
            }
        }
        return Ok(ordered(merged, &patch, &original, None));
    }
    let Some(key) = strategy.key else {
        return Err(Error::Internal(format!(
            "cannot merge lists without merge key for {name}"
        )));
    };
    let (original, patch) = special(original, patch, &key)?;
    let mut merged = original.clone();
    for value in &patch {
        let Value::Object(new) = value else {
            return malformed(format!("{name} has items that are maps and others"));
        };
        let Some(id) = new.get(&*key) else {
            return Err(Error::Internal(format!(
                "map: {} does not contain declared merge key: {key}",
                go(value)
            )));
        };
        match merged.iter_mut().find(|each| each.get(&*key) == Some(id)) {
            Some(Value::Object(old)) => {
                *old = merge_map(item, std::mem::take(old), new.clone())?;
            }
            _ => merged.extend(taken(value.clone())?),
        }
    }
    Ok(ordered(merged, &patch, &original, Some(&key)))
}

/// Carries out what items of the patch say about the list: what is left of both.
fn special(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Outcome<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replaces = false;
    for mut item in patch {
        let directive = item.as_object_mut().and_then(|item| item.remove(DIRECTIVE));
        match directive.as_ref().map(Value::as_str) {
            None => plain.push(item),
            Some(Some("delete")) => {
                let Some(id) = item.get(key) else {
                    return malformed(format!("an item to delete has no merge key {key}"));
                };
                original.retain(|each| each.get(key) != Some(id));
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
    Ok(match replaces {
        true => (plain, Vec::new()),
        false => (original, plain),
    })
}

/// Takes scalars out of a list.
pub(super) fn delete_from(original: &mut Object, name: &str, gone: &Value) -> Outcome<()> {
    let Value::Array(gone) = gone else {
        return malformed(format!("{DELETE_FROM}{name} must be a list"));
    };
    if let Some(Value::Array(items)) = original.get_mut(name) {
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

/// Merges the lists whose order a patch sets, and takes them and their orders out of the patch.
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
            (None, Some(new)) => match taken(Value::Array(new))? {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
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
    let missing = |item: &&Value| position(order, item, key).is_none();
    match items.filter(|item| !is_special(item)).find(missing) {
        Some(_) => malformed(format!("an item of {name} is not in {SET_ORDER}{name}")),
        None => Ok(()),
    }
}

fn position(list: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    list.iter().position(|each| match key {
        Some(key) if each.is_object() => each.get(key).is_some() && each.get(key) == item.get(key),
        _ => each == item,
    })
}

/// Orders a merged list: what the patch names as the patch has it, the rest as the server had it, and
/// the two by the server's order where it knows both.
fn ordered(merged: Vec<Value>, patch: &[Value], server: &[Value], key: Option<&str>) -> Vec<Value> {
    let (mut named, mut rest): (Vec<Value>, Vec<Value>) = merged
        .into_iter()
        .partition(|item| position(patch, item, key).is_some());
    named.sort_by_key(|item| position(patch, item, key));
    rest.sort_by_key(|item| position(server, item, key));
    let mut out = Vec::with_capacity(named.len() + rest.len());
    let (mut named, mut rest) = (named.into_iter().peekable(), rest.into_iter().peekable());
    while let (Some(left), Some(right)) = (rest.peek(), named.peek()) {
        let places = (position(server, left, key), position(server, right, key));
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
