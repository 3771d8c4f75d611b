//! Quantities that are sent as numbers.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::resolve::TypeRef;
use super::types::{Scalar, Type};

/// Replaces numbers that are quantities by texts, as they were written.
///
/// `raw` is what the value was read from. Go reads a quantity from the bytes of the number, so `1e3` stays `1e3`.
///
/// ```
/// use lariat_apimachinery::schema::{builtin, keep_quantity_texts};
/// use serde_json::json;
///
/// let raw = r#"{"spec":{"hard":{"cpu":1e3}}}"#;
/// let mut quota = serde_json::from_str(raw).unwrap();
/// let schema = builtin("v1", "ResourceQuota").unwrap();
/// keep_quantity_texts(schema.root(), &mut quota, serde_json::from_str(raw).unwrap());
/// assert_eq!(quota, json!({"spec": {"hard": {"cpu": "1e3"}}}));
/// ```
pub fn keep_quantity_texts(typed: TypeRef<'_>, value: &mut Value, raw: &RawValue) {
    match value {
        Value::Number(number) => {
            let is_quantity = matches!(typed.get(), Some(Type::Scalar(Scalar::Quantity)));
            if is_quantity && number.is_f64() {
                *value = raw.get().into();
            }
        }
        Value::Array(items) => {
            let raw: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
            for (item, raw) in items.iter_mut().zip(raw) {
                keep_quantity_texts(typed.item(), item, raw);
            }
        }
        Value::Object(members) => {
            let raw: HashMap<String, &RawValue> =
                serde_json::from_str(raw.get()).unwrap_or_default();
            for (name, value) in members {
                if let (Some(below), Some(raw)) = (typed.member(name), raw.get(name)) {
                    keep_quantity_texts(below, value, raw);
                }
            }
        }
        _ => {}
    }
}
