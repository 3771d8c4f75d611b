//! Members that are in an object more than once.

use serde_json::Value;

use super::decode::walk;
use super::decode_error::DecodeError;
use super::field_path::FieldPath;
use super::resolve::TypeRef;
use super::types::Type;

/// Reads a member of a type once more, into what was read before, as in Go.
///
/// Parts that the later value does not have stay: members of structures, keys of maps, and members of list items at the
/// same place.
///
/// # Errors
///
/// The earlier value is not of the type, which a later one does not mend.
pub fn merge_duplicate(
    typed: TypeRef<'_>,
    earlier: &Value,
    later: &mut Value,
) -> Result<(), DecodeError> {
    let mut earlier = earlier.clone();
    // Go decodes the earlier value before it sees the later one, and stops there if it does not fit.
    walk(typed, &mut earlier, &FieldPath::ROOT, &mut Vec::new())?;
    merge(typed, earlier, later);
    Ok(())
}

fn merge(typed: TypeRef<'_>, earlier: Value, later: &mut Value) {
    match (typed.get(), earlier, later) {
        (Some(Type::Struct(_)), Value::Object(earlier), Value::Object(later)) => {
            for (name, value) in earlier {
                match (later.get_mut(&name), typed.member(&name)) {
                    (Some(later), Some(typed)) => merge(typed, value, later),
                    // An unknown member is dropped when the later value is decoded.
                    (Some(_), None) => {}
                    (None, _) => {
                        later.insert(name, value);
                    }
                }
            }
        }
        (Some(Type::Map(_)), Value::Object(earlier), Value::Object(later)) => {
            for (key, value) in earlier {
                later.entry(key).or_insert(value);
            }
        }
        // The decoder reuses the elements of the slice, so an item keeps members of the earlier item at its place.
        (Some(Type::List(_)), Value::Array(earlier), Value::Array(later)) => {
            for (earlier, later) in earlier.into_iter().zip(later) {
                merge(typed.item(), earlier, later);
            }
        }
        // A scalar, or a value of another form: the later one replaces the earlier one.
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    #[test]
    fn what_is_read_again_is_read_into_what_was_there() {
        let pod = builtin("v1", "Pod").unwrap();
        let spec = pod.root().member("spec").unwrap();
        let earlier = json!({"nodeSelector": {"a": "1", "b": "1"}, "hostname": "x",
            "containers": [{"name": "a", "image": "b"}, {"name": "c"}]});
        let mut later = json!({"nodeSelector": {"b": "2"}, "containers": [{"image": "d"}]});
        merge_duplicate(spec, &earlier, &mut later).unwrap();
        let expected = json!({"nodeSelector": {"a": "1", "b": "2"}, "hostname": "x",
            "containers": [{"name": "a", "image": "d"}]});
        assert_eq!(later, expected);
    }

    #[test]
    fn what_was_there_must_be_of_the_type() {
        let config = builtin("v1", "ConfigMap").unwrap();
        let data = config.root().member("data").unwrap();
        let mut later = json!({"a": "b"});
        let error = merge_duplicate(data, &json!({"a": 1}), &mut later).unwrap_err();
        assert!(
            error.to_string().contains("cannot unmarshal number"),
            "{error}"
        );
        assert_eq!(later, json!({"a": "b"}));
    }
}
