//! JSON patch (RFC 6902), as the library of the API server implements it.
//!
//! Source: `gopkg.in/evanphx/json-patch.v4`: a `replace` of a missing member adds it, a `test` of a missing member
//! against null holds if there is an object around it, and an index may count from the end.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::nesting::{DEEPEST, is_deeper};

/// The number of bytes that a patch may copy: as many as a body may have.
// `AccumulatedCopySizeLimit`: a patch that copies a value into itself doubles it with each operation.
const MOST_COPIED: usize = 3 * 1024 * 1024;

/// The largest number of operations of a patch.
// `maxJSONPatchOperations`.
pub(super) const MOST_OPERATIONS: usize = 10_000;

/// One operation of a JSON patch; its errors are found when it is applied.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct PatchOperation {
    #[serde(default)]
    pub(super) op: String,
    #[serde(default)]
    pub(super) path: String,
    pub(super) from: Option<String>,
    #[serde(default)]
    pub(super) value: Value,
}

/// Changes a document, or returns the operation that failed.
pub(super) fn apply(document: &mut Value, operations: &[PatchOperation]) -> Result<(), String> {
    let mut copied = 0;
    for operation in operations {
        let failed = |reason| operation.describe(reason);
        // The document is left half changed, which is fine: the caller drops it.
        operation.apply(document, &mut copied).map_err(failed)?;
    }
    Ok(())
}

impl PatchOperation {
    fn apply(&self, document: &mut Value, copied: &mut usize) -> Result<(), &'static str> {
        match self.op.as_str() {
            "add" => add(document, &self.path, self.value.clone()),
            "remove" => remove(document, &self.path).map(drop),
            "replace" => replace(document, &self.path, self.value.clone()),
            "move" => {
                // Removed before it is added, so that an index in `path` counts without the moved item.
                let moved = remove(document, self.from()?)?;
                add(document, &self.path, moved)
            }
            "copy" => {
                // A missing member is copied as null.
                let copy = match look_up(document, self.from()?)? {
                    _ if self.from()?.is_empty() => return Err(MISSING),
                    Some(found) => found.clone(),
                    None if is_member(document, self.from()?) => Value::Null,
                    None => return Err(MISSING),
                };
                // Only what copies add counts; what the patch itself carries is bounded by the size of a body.
                *copied += copy.to_string().len();
                if *copied > MOST_COPIED {
                    return Err("the patch copies too much");
                }
                add(document, &self.path, copy)
            }
            "test" => match look_up(document, &self.path)? {
                Some(found) if *found == self.value => Ok(()),
                // A test for null is how clients ask for absence.
                None if self.value.is_null() => Ok(()),
                _ => Err("testing value failed"),
            },
            _ => Err("unexpected kind"),
        }
    }

    /// Returns the error of Go's library for an operation that failed.
    fn describe(&self, reason: &str) -> String {
        let (op, path) = (self.op.as_str(), self.path.as_str());
        let key = unescape(path.rsplit('/').next().unwrap_or_default());
        match (op, reason) {
            ("add", MISSING) => {
                format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}")
            }
            ("remove", MISSING) => format!(
                "error in remove for path: '{path}': Unable to remove nonexistent key: {key}: {MISSING}"
            ),
            ("replace", MISSING) => {
                format!("replace operation does not apply: doc is missing path: {path}: {MISSING}")
            }
            ("move" | "copy", MISSING) => {
                let from = self.from.as_deref().unwrap_or_default();
                format!(
                    "{op} operation does not apply: doc is missing from path: {from}: {MISSING}"
                )
            }
            ("test", _) => format!("testing value {path} failed: test failed"),
            ("add" | "remove" | "replace", reason) => {
                format!("error in {op} for path: '{path}': {reason}")
            }
            (op, reason) => format!("{op} operation of {path}: {reason}"),
        }
    }

    fn from(&self) -> Result<&str, &'static str> {
        self.from.as_deref().ok_or("it has no from")
    }
}

const MISSING: &str = "missing value";

const NO_PATH: &str = "the path has no /";

/// The target of an operation.
enum Target<'a> {
    Member(&'a mut Map<String, Value>, String),
    Item(&'a mut Vec<Value>, String),
}

fn place<'a>(document: &'a mut Value, path: &str) -> Result<Target<'a>, &'static str> {
    // All but the last segment must exist; `add` makes no parents.
    let (parent, last) = path.rsplit_once('/').ok_or(NO_PATH)?;
    let name = unescape(last);
    match container(document, parent)? {
        Value::Object(map) => Ok(Target::Member(map, name)),
        Value::Array(items) => Ok(Target::Item(items, name)),
        _ => Err(MISSING),
    }
}

fn unescape(token: &str) -> String {
    // In this order, as RFC 6901 demands: the other way `~01` would become a slash.
    token.replace("~1", "/").replace("~0", "~")
}

/// Returns the value at a path.
///
/// Indices are read as in the last segment of an operation's path.
fn container<'a>(document: &'a mut Value, path: &str) -> Result<&'a mut Value, &'static str> {
    let mut at = document;
    for token in tokens(path) {
        at = match at {
            Value::Object(map) => map.get_mut(&token),
            Value::Array(items) => index(&token, items.len())
                .ok()
                .and_then(|at| items.get_mut(at)),
            _ => None,
        }
        .ok_or(MISSING)?;
    }
    Ok(at)
}

/// Returns the value at a path; `None` for a missing member of an existing object.
fn look_up<'a>(document: &'a Value, path: &str) -> Result<Option<&'a Value>, &'static str> {
    if !path.is_empty() && !path.contains('/') {
        return Err(NO_PATH);
    }
    let mut at = Some(document);
    for token in tokens(path) {
        at = match at.ok_or(MISSING)? {
            Value::Object(map) => map.get(&token),
            Value::Array(items) => {
                // An index that is no number is an error even in a `test`, unlike a missing member.
                let item = items.get(index(&token, items.len())?);
                Some(item.ok_or("the index is out of bounds")?)
            }
            _ => return Err(MISSING),
        };
    }
    Ok(at)
}

/// Splits a path; as in `findObject`, the text before the first slash does not count.
fn tokens(path: &str) -> impl Iterator<Item = String> {
    let rest = path.split_once('/').map(|(_, rest)| rest);
    rest.into_iter()
        .flat_map(|rest| rest.split('/').map(unescape))
}

/// Reads the index of an item; a negative one counts from the end.
fn index(text: &str, length: usize) -> Result<usize, &'static str> {
    let signed: i64 = text.parse().map_err(|_| "the index is no number")?;
    let at = match signed {
        0.. => usize::try_from(signed).ok(),
        _ => length.checked_sub(usize::try_from(signed.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    at.ok_or("the index is out of bounds")
}

/// Returns whether a path leads to a member of an object that is there.
fn is_member(document: &Value, path: &str) -> bool {
    let above = path.rsplit_once('/').map(|(above, _)| above);
    above.is_some_and(|above| {
        let above = above.find('/').map_or("", |at| &above[at..]);
        document.pointer(above).is_some_and(Value::is_object)
    })
}

/// Refuses operations that would nest the document too deep.
///
/// A copy of a value into itself doubles the depth each time.
fn check_depth(path: &str, value: &Value) -> Result<(), &'static str> {
    let levels = DEEPEST.checked_sub(path.matches('/').count());
    if levels.is_none_or(|levels| is_deeper(value, levels)) {
        Err("exceeded max depth")
    } else {
        Ok(())
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), &'static str> {
    check_depth(path, &value)?;
    match place(document, path)? {
        Target::Member(map, name) => drop(map.insert(name, value)),
        Target::Item(items, name) => {
            let at = match name.as_str() {
                // Only `add` knows the place behind the last item.
                "-" => items.len(),
                // One more than there are, so that -1 appends.
                name => index(name, items.len() + 1)?,
            };
            if at > items.len() {
                return Err("the index is out of bounds");
            }
            items.insert(at, value);
        }
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str) -> Result<Value, &'static str> {
    match place(document, path)? {
        Target::Member(map, name) => map.remove(&name).ok_or(MISSING),
        Target::Item(items, name) => {
            let at = index(&name, items.len())?;
            if at >= items.len() {
                return Err("the index is out of bounds");
            }
            Ok(items.remove(at))
        }
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), &'static str> {
    check_depth(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("the value is no object or array");
        }
        *document = value;
        return Ok(());
    }
    match place(document, path)? {
        // `partialDoc.get` has no error for a missing member, so replacing one adds it.
        Target::Member(map, name) => drop(map.insert(name, value)),
        Target::Item(items, name) => {
            let at = index(&name, items.len())?;
            *items.get_mut(at).ok_or("the index is out of bounds")? = value;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Applies one operation.
    fn check(document: &Value, operation: &Value, expected: Option<&Value>) {
        let mut patched = document.clone();
        let operations: Vec<PatchOperation> = serde_json::from_value(json!([operation])).unwrap();
        let outcome = apply(&mut patched, &operations).ok().map(|()| patched);
        assert_eq!(outcome.as_ref(), expected, "{operation} on {document}");
    }

    #[test]
    fn an_index_counts_from_the_end_wherever_it_stands() {
        let document = json!({"a": [[1], {"b": 2}]});
        for (operation, expected) in [
            (
                json!({"op": "add", "path": "/a/-2/0", "value": 0}),
                json!({"a": [[0, 1], {"b": 2}]}),
            ),
            (
                json!({"op": "copy", "from": "/a/-1/b", "path": "/c"}),
                json!({"a": [[1], {"b": 2}], "c": 2}),
            ),
            (
                json!({"op": "test", "path": "/a/01/b", "value": 2}),
                document.clone(),
            ),
        ] {
            check(&document, &operation, Some(&expected));
        }
    }

    #[test]
    fn what_is_before_the_first_slash_does_not_count() {
        let document = json!({"a": {"b": 1}});
        let changed = json!({"a": {"b": 1, "c": 2}});
        let add = |path: &str| json!({"op": "add", "path": path, "value": 2});
        check(&document, &add("x/a/c"), Some(&changed));
        for path in ["", "a", "x"] {
            check(&document, &add(path), None);
        }
        let copy = json!({"op": "copy", "from": "x/a/b", "path": "/c"});
        check(&document, &copy, Some(&json!({"a": {"b": 1}, "c": 1})));
        let copy = json!({"op": "copy", "from": "", "path": "/c"});
        check(&document, &copy, None);
        let replace = |value: &Value| json!({"op": "replace", "path": "", "value": value});
        check(&document, &replace(&json!(1)), None);
        check(&document, &replace(&json!({})), Some(&json!({})));
    }

    #[test]
    fn null_is_found_where_a_member_could_be() {
        let test = |path: &str| json!({"op": "test", "path": path, "value": null});
        let document = json!({"a": [1]});
        check(&document, &test("/b"), Some(&document));
        for path in ["b", "/b/c", "/a/1", "/a/x", "/a/0/b"] {
            check(&document, &test(path), None);
        }
    }

    #[test]
    fn members_and_items_come_go_and_change() {
        for (document, operation, expected) in [
            (
                json!({"a": 1}),
                json!({"op": "add", "path": "/b", "value": 2}),
                json!({"a": 1, "b": 2}),
            ),
            (
                json!({"a": [1]}),
                json!({"op": "add", "path": "/a/-", "value": 2}),
                json!({"a": [1, 2]}),
            ),
            (
                json!({"a": [1]}),
                json!({"op": "add", "path": "/a/0", "value": 2}),
                json!({"a": [2, 1]}),
            ),
            (
                json!({"a": 1}),
                json!({"op": "remove", "path": "/a"}),
                json!({}),
            ),
            (
                json!({}),
                json!({"op": "replace", "path": "/a", "value": 1}),
                json!({"a": 1}),
            ),
            (
                json!({"x/y": 1}),
                json!({"op": "move", "from": "/x~1y", "path": "/b"}),
                json!({"b": 1}),
            ),
            (
                json!({"a": 1}),
                json!({"op": "copy", "from": "/a", "path": "/b"}),
                json!({"a": 1, "b": 1}),
            ),
            (
                json!({}),
                json!({"op": "test", "path": "/a", "value": null}),
                json!({}),
            ),
        ] {
            check(&document, &operation, Some(&expected));
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for (document, operation) in [
            (
                json!({"a": [1]}),
                json!({"op": "add", "path": "/a/5", "value": 2}),
            ),
            (json!({}), json!({"op": "add", "path": "/a/b", "value": 2})),
            (json!({}), json!({"op": "remove", "path": "/a"})),
            (
                json!({"a": 1}),
                json!({"op": "test", "path": "/a", "value": 2}),
            ),
            (json!({"a": 1}), json!({"op": "bogus", "path": "/a"})),
        ] {
            check(&document, &operation, None);
        }
    }

    #[test]
    fn copies_cannot_nest_or_grow_without_end() {
        let into_itself = json!([{"op": "copy", "from": "", "path": "/a"}]);
        let one: Vec<PatchOperation> = serde_json::from_value(into_itself).unwrap();
        let many: Vec<PatchOperation> = one.iter().cycle().take(1000).cloned().collect();
        assert!(apply(&mut json!({}), &many).is_err());
        let twice: Vec<PatchOperation> = serde_json::from_value(json!([
            {"op": "copy", "from": "/a", "path": "/a/-"},
        ]))
        .unwrap();
        let many: Vec<PatchOperation> = twice.iter().cycle().take(100).cloned().collect();
        assert!(apply(&mut json!({"a": [1, 2]}), &many).is_err());
    }

    proptest! {
        #[test]
        fn no_operation_panics(
            op in "add|remove|replace|move|copy|test|x",
            path in "(/[a-b0-1~-]{0,2}){0,3}",
            from in prop::option::of("(/[a-b0-1~-]{0,2}){0,3}"),
        ) {
            let operation = PatchOperation { op, path, from, value: json!(1) };
            let _ = apply(&mut json!({"a": [{"b": 1}, 2], "b": {}}), &[operation]);
        }
    }
}
