//! JSON patch as RFC 6902 words it, with the ways of the library the API server uses.
//!
//! These are: an index may be written as `strconv.Atoi` reads it and counts from the end if it is negative, `replace`
//! adds a missing member, and `test` of a missing member against null holds.

use serde_json::Value;

/// Applies operations; `None` if one of them cannot be carried out.
pub(crate) fn apply(mut document: Value, operations: &[Value]) -> Option<Value> {
    for operation in operations {
        document = step(document, operation)?;
    }
    Some(document)
}

fn step(document: Value, operation: &Value) -> Option<Value> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let path = tokens(text("path").unwrap_or(""))?;
    let value = operation.get("value").cloned().unwrap_or(Value::Null);
    match text("op").unwrap_or("") {
        "add" => change(document, &path, &Change::Add(value)),
        "replace" => change(document, &path, &Change::Replace(value)),
        "remove" => change(document, &path, &Change::Remove),
        "move" => {
            let from = tokens(text("from")?)?;
            let moved = get(&document, &from)?.clone();
            let document = change(document, &from, &Change::Remove)?;
            change(document, &path, &Change::Add(moved))
        }
        "copy" => {
            let copied = get(&document, &tokens(text("from")?)?)?.clone();
            change(document, &path, &Change::Add(copied))
        }
        "test" => match get(&document, &path) {
            Some(found) => (*found == value).then_some(document),
            None => (value.is_null() && could_be(&document, &path)).then_some(document),
        },
        _ => None,
    }
}

enum Change {
    Add(Value),
    Replace(Value),
    Remove,
}

fn tokens(path: &str) -> Option<Vec<String>> {
    if path.is_empty() {
        return Some(Vec::new());
    }
    let rest = path.strip_prefix('/')?;
    let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
    Some(rest.split('/').map(unescaped).collect())
}

/// Returns the place an index names in a list of some length.
fn place(token: &str, length: usize) -> Option<usize> {
    let index: i64 = token.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { index + length } else { index };
    usize::try_from(at).ok().filter(|_| at <= length)
}

fn get<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    let Some((first, rest)) = path.split_first() else {
        return Some(value);
    };
    match value {
        Value::Object(members) => get(members.get(first)?, rest),
        Value::Array(items) => get(items.get(place(first, items.len())?)?, rest),
        _ => None,
    }
}

/// Returns whether there is an object in which a path names a member.
fn could_be(document: &Value, path: &[String]) -> bool {
    let parent = path
        .split_last()
        .and_then(|(_, parent)| get(document, parent));
    parent.is_some_and(Value::is_object)
}

/// Rebuilds a value with one place in it changed.
fn change(value: Value, path: &[String], what: &Change) -> Option<Value> {
    let Some((first, rest)) = path.split_first() else {
        return match what {
            Change::Add(new) | Change::Replace(new) => Some(new.clone()),
            Change::Remove => None,
        };
    };
    match value {
        Value::Object(mut members) => {
            if !rest.is_empty() {
                let below = members.get(first)?.clone();
                members.insert(first.clone(), change(below, rest, what)?);
                return Some(Value::Object(members));
            }
            match what {
                Change::Add(new) | Change::Replace(new) => {
                    members.insert(first.clone(), new.clone());
                }
                Change::Remove => drop(members.remove(first)?),
            }
            Some(Value::Object(members))
        }
        Value::Array(items) => change_item(items, first, rest, what),
        _ => None,
    }
}

fn change_item(
    mut items: Vec<Value>,
    first: &str,
    rest: &[String],
    what: &Change,
) -> Option<Value> {
    match what {
        Change::Add(new) if rest.is_empty() => {
            let length = items.len();
            let at = match first {
                "-" => length,
                // A negative index counts from behind the item that is added.
                index => place(index, length + 1).filter(|at| *at <= length)?,
            };
            items.insert(at, new.clone());
        }
        Change::Remove if rest.is_empty() => {
            let at = place(first, items.len()).filter(|at| *at < items.len())?;
            items.remove(at);
        }
        _ => {
            let at = place(first, items.len())?;
            let slot = items.get_mut(at)?;
            *slot = change(slot.clone(), rest, what)?;
        }
    }
    Some(Value::Array(items))
}
