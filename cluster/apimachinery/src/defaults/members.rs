//! Setting members that are not there.

use serde_json::Value;

use crate::object::Object;

/// Sets a member unless it is there.
pub(super) fn set(object: &mut Object, name: &str, value: impl Into<Value>) {
    // Null is absent. An empty text is not, for which there is `set_text`.
    if object.get(name).is_none_or(Value::is_null) {
        object.insert(name.to_owned(), value.into());
    }
}

/// Sets a text that is missing or empty: a member that is no pointer in Go.
pub(super) fn set_text(object: &mut Object, name: &str, value: &str) {
    if text(object, name).is_empty() {
        object.insert(name.to_owned(), value.into());
    }
}

/// Sets a number that is missing or zero: a member that is no pointer in Go.
pub(super) fn set_number(object: &mut Object, name: &str, value: i64) {
    if object
        .get(name)
        .is_none_or(|value| value.is_null() || *value == 0)
    {
        object.insert(name.to_owned(), value.into());
    }
}

/// Returns a member that is an object, which is made if it is not there.
pub(super) fn made<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    // `None` if the member is there and no object, which validation will refuse.
    set(object, name, Object::new());
    object.get_mut(name)?.as_object_mut()
}

/// Returns a member that is an object.
pub(super) fn inner<'a>(object: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    object.get_mut(name)?.as_object_mut()
}

/// Calls a function with every object in a list.
pub(super) fn each(object: &mut Object, name: &str, mut fill: impl FnMut(&mut Object)) {
    let items = object.get_mut(name).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        if let Some(item) = item.as_object_mut() {
            fill(item);
        }
    }
}

/// Returns a text, empty if it is not there.
pub(super) fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns whether a member is a list, a map or a text with something in it.
pub(super) fn has(object: &Object, name: &str) -> bool {
    match object.get(name) {
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        _ => false,
    }
}
