//! The parts of an object, which may not be there.

use lariat_apimachinery::object::Object;
use serde_json::Value;

/// Returns a value in an object by its path.
pub(super) fn at<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let first = object.get(*first);
    rest.iter().fold(first, |value, name| value?.get(*name))
}

/// Returns whether a member is missing or empty.
pub(super) fn is_void(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}
