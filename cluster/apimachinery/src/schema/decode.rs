//! Decoding of an object as its built-in Go type.
//!
//! Wrong types are refused, unknown fields are dropped, and values are written in Go's form.

use std::collections::HashSet;

use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD as BASE64;
use base64::{DecodeError as Base64Error, Engine};
use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use super::decode_error::DecodeError;
use super::field_path::FieldPath;
use super::resolve::{Resolved, TypeRef};
use super::types::{Field, Scalar, SchemaAlternative, Type, Zero};
use crate::quantity::Quantity;
use crate::{go_text, go_time};

// Go's `base64.StdEncoding` is not strict about the bits behind the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Converts an object to the form of its type, and returns unknown fields.
///
/// # Errors
///
/// The first value of a wrong type, by the names of members.
///
/// ```
/// use lariat_apimachinery::schema::{self, DecodeError};
/// use serde_json::json;
///
/// let types = schema::builtin("v1", "Pod").expect("it is built in");
/// let pod = json!({"spec": {"hostNetwork": true, "hostNetworking": true}});
/// let mut pod = pod.as_object().cloned().unwrap_or_default();
/// assert_eq!(schema::decode(types.root(), &mut pod)?, ["spec.hostNetworking"]);
///
/// let wrong = json!({"spec": {"hostNetwork": "yes"}});
/// let error = schema::decode(types.root(), &mut wrong.as_object().cloned().unwrap_or_default());
/// assert_eq!(
///     error.unwrap_err().to_string(),
///     "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"
/// );
/// # Ok::<(), DecodeError>(())
/// ```
pub fn decode(
    typed: TypeRef<'_>,
    object: &mut Map<String, Value>,
) -> Result<Vec<String>, DecodeError> {
    let mut unknown = Vec::new();
    members(typed, object, &FieldPath::ROOT, &mut unknown)?;
    Ok(unknown)
}

/// Converts the metadata of an object to the form in which Go writes them, and returns unknown fields.
///
/// # Errors
///
/// As for [`decode`].
pub(crate) fn decode_metadata(metadata: &mut Value) -> Result<Vec<String>, DecodeError> {
    let (types, id) = super::builtin::object_meta();
    let typed = TypeRef::new(types, id);
    match metadata {
        Value::Null => *metadata = Value::Object(Map::new()),
        Value::Object(members) => return decode(typed, members),
        other => return Err(DecodeError::new(other, typed)),
    }
    Ok(Vec::new())
}

fn members(
    typed: TypeRef<'_>,
    object: &mut Map<String, Value>,
    path: &FieldPath<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    let mut dropped = Vec::new();
    for (name, value) in object.iter_mut() {
        // Unknown members are dropped and reported; whether that is an error depends on the field validation of the
        // request.
        let Some((field, below)) = typed.find(name) else {
            unknown.push(path.member(name).to_string());
            dropped.push(name.clone());
            continue;
        };
        let was_null = value.is_null();
        match field.and_then(Field::schema_alternative) {
            // What is unknown in there Go does not tell.
            Some(or) => schema_or(typed, or, value),
            None => walk(below, value, &path.member(name), unknown),
        }
        .map_err(|error| error.below(typed, name))?;
        // An entry of a map: a null there is the zero of the map's value type, while a null field is absent.
        if field.is_none() {
            fill_null(below, value);
        }
        // A pointer to a time without value is written as null.
        let is_zero = !was_null && value.is_null();
        let is_kept = is_zero && field.is_some_and(|field| field.zero == Zero::Kept);
        if !is_kept && is_empty(field, name, below, value) {
            dropped.push(name.clone());
        }
    }
    for name in dropped {
        object.remove(&name);
    }
    Ok(())
}

/// Returns whether Go reads a member as if it were absent.
///
/// Zeros that Go writes nevertheless are filled in by [`fill_zeros`](super::fill_zeros).
// This is no part of `members`, whose frames are on the stack once a level.
fn is_empty(field: Option<&Field>, name: &str, below: TypeRef<'_>, value: &Value) -> bool {
    // What Go writes in any case is null or empty, as it came.
    let is_omitted = field.is_some_and(|field| matches!(field.zero, Zero::Omitted | Zero::Kept));
    match value {
        Value::Null => field.is_some() || below.get().is_some(),
        // Go's decoder makes an empty slice, which `omitempty` leaves out when the object is written.
        Value::Array(items) => {
            let is_list = matches!(below.get(), Some(Type::List(_)));
            // An empty list of managed fields is a request to forget the managers. One of the policies of an autoscaler
            // gets no default, and is refused.
            let is_kept = matches!(name, "managedFields" | "policies");
            is_omitted && is_list && items.is_empty() && !is_kept
        }
        Value::Object(map) => {
            // An empty `dependencies` is kept, so that validation can refuse it.
            let may_be_strings =
                field.and_then(Field::schema_alternative) == Some(SchemaAlternative::Strings);
            is_omitted && map.is_empty() && is_map(below) && !may_be_strings
        }
        value => match (field, below.get()) {
            (Some(field), Some(Type::Scalar(scalar))) => field.leaves_out(*scalar, value),
            _ => false,
        },
    }
}

/// Returns whether a sent object has an empty list or map that decoding drops.
///
/// Members named in `outside` are not looked at.
#[must_use]
pub fn has_empty(typed: TypeRef<'_>, value: &Value, outside: &[&str]) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            let Some((field, below)) = typed.find(name) else {
                return false;
            };
            let is_void = matches!(value, Value::Array(_) | Value::Object(_))
                && is_empty(field, name, below, value);
            let counts = !outside.contains(&name.as_str());
            counts && (is_void || has_empty(below, value, outside))
        }),
        Value::Array(items) => items
            .iter()
            .any(|item| has_empty(typed.item(), item, outside)),
        _ => false,
    }
}

/// Replaces nulls in maps and lists by empty strings, quantities or structures.
fn fill_null(typed: TypeRef<'_>, value: &mut Value) {
    if !value.is_null() {
        return;
    }
    match typed.get() {
        Some(Type::Scalar(Scalar::String | Scalar::Bytes)) => *value = "".into(),
        Some(Type::Scalar(Scalar::Quantity)) => *value = "0".into(),
        Some(Type::Struct(_)) => *value = Value::Object(Map::new()),
        _ => {}
    }
}

/// Decodes a schema of a CRD, or the alternative to one.
///
/// Source: the `UnmarshalJSON` of `JSONSchemaPropsOrBool` and its relatives.
fn schema_or(
    typed: TypeRef<'_>,
    or: SchemaAlternative,
    value: &mut Value,
) -> Result<(), DecodeError> {
    match (value, or) {
        (Value::Object(members), SchemaAlternative::Strings) => members
            .values_mut()
            .filter(|value| value.is_object())
            .try_for_each(|schema| walk(typed, schema, &FieldPath::ROOT, &mut Vec::new())),
        (value @ Value::Object(_), _) => walk(typed, value, &FieldPath::ROOT, &mut Vec::new()),
        (Value::Array(schemas), SchemaAlternative::List) => schemas
            .iter_mut()
            .try_for_each(|schema| walk(typed, schema, &FieldPath::ROOT, &mut Vec::new())),
        // These two decoders ignore what they do not know, while that of a bool has an error for it.
        (Value::Bool(_) | Value::Null, SchemaAlternative::Bool)
        | (_, SchemaAlternative::List | SchemaAlternative::Strings) => Ok(()),
        _ => Err(DecodeError::unreadable(
            "boolean or JSON schema expected".to_owned(),
        )),
    }
}

fn is_map(typed: TypeRef<'_>) -> bool {
    matches!(typed.get(), Some(Type::Map(_)))
}

pub(super) fn walk(
    typed: TypeRef<'_>,
    value: &mut Value,
    path: &FieldPath<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), DecodeError> {
    // Null fits every type: Go leaves the zero value.
    if value.is_null() {
        return Ok(());
    }
    let wrong = |value: &Value| Err(DecodeError::new(value, typed));
    match typed.resolve(value) {
        Resolved::Scalar(None) | Resolved::AnyList | Resolved::AnyMap => Ok(()),
        Resolved::Scalar(Some(scalar)) => match fit(scalar, value) {
            Fit::Fits => Ok(()),
            Fit::Becomes(new) => {
                *value = new;
                Ok(())
            }
            Fit::Wrong => wrong(value),
            Fit::Unreadable(error) => Err(DecodeError::unreadable(error)),
        },
        Resolved::List(_) => match value {
            Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(at, item)| {
                fill_null(typed.item(), item);
                walk(typed.item(), item, &path.item(at), unknown)
            }),
            other => wrong(other),
        },
        Resolved::Map | Resolved::Struct => match value {
            Value::Object(object) => members(typed, object, path, unknown),
            other => wrong(other),
        },
    }
}

enum Fit {
    Fits,
    Becomes(Value),
    /// It is not of the wanted type.
    Wrong,
    /// It is, but cannot be read.
    Unreadable(String),
}

fn fit(scalar: Scalar, value: &Value) -> Fit {
    match (scalar, value) {
        (Scalar::String, Value::String(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::IntOrString, Value::String(_)) => Fit::Fits,
        (Scalar::Number, Value::Number(number)) => {
            // Go writes a float without a fraction as an integer.
            whole(number).map_or(Fit::Fits, |whole| Fit::Becomes(whole.into()))
        }
        (Scalar::Int32, Value::Number(number)) => {
            if is_int32(number) {
                Fit::Fits
            } else {
                Fit::Wrong
            }
        }
        (Scalar::Int64, Value::Number(number)) if number.is_i64() => Fit::Fits,
        (Scalar::IntOrString, Value::Number(number)) if is_int32(number) => Fit::Fits,
        (Scalar::Bytes, Value::String(text)) => bytes(text),
        (Scalar::Bytes, Value::Array(items)) => bytes_of(items),
        (Scalar::Time, Value::String(text)) => time(text),
        (Scalar::MicroTime, Value::String(text)) => micro_time(text),
        (Scalar::Quantity, Value::String(text)) => quantity(text, value),
        // `Quantity.UnmarshalJSON` reads the bytes of a number as if they were quoted.
        (Scalar::Quantity, Value::Number(number)) if number.is_f64() => {
            let number = number.as_f64().unwrap_or_default();
            quantity(&go_text::json_float(number), value)
        }
        (Scalar::Quantity, other) => quantity(&other.to_string(), value),
        _ => Fit::Wrong,
    }
}

/// Converts whole numbers to integers, and wraps those that overflow, as Go does.
///
/// ```
/// use lariat_apimachinery::schema;
/// use serde_json::json;
///
/// let types = schema::builtin("apps/v1", "Deployment").expect("it is built in");
/// let mut deployment = json!({"spec": {"replicas": 4_294_967_297_i64}});
/// schema::wrap_numbers(types.root(), &mut deployment);
/// assert_eq!(deployment["spec"]["replicas"], 1);
/// ```
pub fn wrap_numbers(typed: TypeRef<'_>, value: &mut Value) {
    match value {
        // The conversion of unstructured content casts and checks nothing, so 2^32 becomes 0 where the JSON decoder
        // would refuse it.
        Value::Number(number) => {
            let wide = || number.as_i64().or_else(|| cut(number));
            match typed.get() {
                Some(Type::Scalar(Scalar::Int32)) => {
                    if let Some(wide) = wide() {
                        *number = wrapped(wide).into();
                    }
                }
                Some(Type::Scalar(Scalar::Int64)) => {
                    if let Some(wide) = wide() {
                        *number = wide.into();
                    }
                }
                _ => {}
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| wrap_numbers(typed.item(), item)),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| {
            if let Some(below) = typed.member(name) {
                wrap_numbers(below, value);
            }
        }),
        _ => {}
    }
}

/// Converts a whole number as Go does: one that overflows becomes the least integer.
#[allow(clippy::cast_possible_truncation, reason = "it is within the limits")]
fn cut(number: &serde_json::Number) -> Option<i64> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    let fits = (-(2f64.powi(63))..2f64.powi(63)).contains(&float);
    Some(if fits { float as i64 } else { i64::MIN })
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "that is what Go does with the number"
)]
fn wrapped(number: i64) -> i32 {
    number as i32
}

/// Writes whole numbers without a fraction, as Go does.
///
/// Numbers beyond a signed 64-bit integer stay floats, as in Go. A list with both `1` and `1.0` stays as it is, because
/// Go compares the items of a set before it writes them.
///
/// ```
/// use lariat_apimachinery::schema;
/// use serde_json::json;
///
/// let mut numbers = json!([3.0, 2.5]);
/// schema::write_whole_numbers(&mut numbers);
/// assert_eq!(numbers.to_string(), "[3,2.5]");
/// ```
pub fn write_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *number = whole.into();
            } else if number.is_u64()
                && !number.is_i64()
                && let Some(float) = number.as_f64().and_then(Number::from_f64)
            {
                *number = float;
            }
        }
        Value::Array(items) if has_both_forms(items) => {}
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers),
        Value::Object(members) => members.values_mut().for_each(write_whole_numbers),
        _ => {}
    }
}

/// Converts the whole numbers of YAML to integers, as Go does for JSON.
pub fn read_whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let fits = |float: &f64| float.abs() < 2f64.powi(63);
            if let Some(whole) = number.as_f64().filter(fits).and_then(|_| cut(number)) {
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(read_whole_numbers),
        Value::Object(members) => members.values_mut().for_each(read_whole_numbers),
        _ => {}
    }
}

/// Returns whether a list has a number as an integer and with a fraction of zero.
fn has_both_forms(items: &[Value]) -> bool {
    let numbers = || items.iter().filter_map(Value::as_number);
    let whole: HashSet<i64> = numbers().filter_map(whole).collect();
    !whole.is_empty() && numbers().any(|it| it.as_i64().is_some_and(|it| whole.contains(&it)))
}

/// Returns the integer of a number with a fraction of zero.
///
/// Integers and numbers that are too large for one stay as they are.
#[allow(
    clippy::cast_possible_truncation,
    reason = "it is whole, and far from the limits of an i64"
)]
fn whole(number: &serde_json::Number) -> Option<i64> {
    // 2^53, up to which a float holds every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
}

fn is_int32(number: &serde_json::Number) -> bool {
    let number = number.as_i64();
    number.is_some_and(|number| i32::try_from(number).is_ok())
}

/// Reads bytes that are written as a list of numbers, which Go reads as well.
fn bytes_of(items: &[Value]) -> Fit {
    let byte = |item: &Value| match item {
        Value::Null => Some(0),
        item => u8::try_from(item.as_u64()?).ok(),
    };
    let bytes: Option<Vec<u8>> = items.iter().map(byte).collect();
    bytes.map_or(Fit::Wrong, |bytes| {
        Fit::Becomes(BASE64.encode(bytes).into())
    })
}

/// Reads base64 as Go does: it skips line ends, and ignores the last bits.
fn bytes(text: &str) -> Fit {
    // The position of an error therefore is that in the text without line ends.
    let on_one_line = text.replace(['\r', '\n'], "");
    match LENIENT.decode(on_one_line) {
        Ok(bytes) => written(text, BASE64.encode(bytes)),
        Err(error) => {
            let at = match error {
                Base64Error::InvalidByte(at, _) => at,
                // Go names the first of the four bytes.
                _ => text.len() / 4 * 4,
            };
            Fit::Unreadable(format!("illegal base64 data at input byte {at}"))
        }
    }
}

/// Times are kept in whole seconds, UTC.
fn time(text: &str) -> Fit {
    // `metav1.Time` is written by RFC 3339 without a fraction, which is dropped and not rounded.
    let fit = time_of(text, go_time::rfc3339(text), |time| {
        let seconds = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
        let seconds = Timestamp::from_second(seconds).unwrap_or(time);
        (seconds, format!("{seconds:.0}"))
    });
    match (fit, text.split_once('.')) {
        // On the last day, which is kept as sent.
        (Fit::Fits, Some((seconds, fraction))) if fraction.ends_with('Z') => {
            Fit::Becomes(format!("{seconds}Z").into())
        }
        (fit, _) => fit,
    }
}

/// Exact times have exactly six digits behind the point, or Go does not read them.
fn micro_time(text: &str) -> Fit {
    time_of(text, go_time::rfc3339_micro(text), |time| {
        (time, format!("{time:.6}"))
    })
}

/// Returns what becomes of a time; `write` returns it as far as it is kept, and its text.
fn time_of(
    text: &str,
    time: Result<Timestamp, String>,
    write: impl Fn(Timestamp) -> (Timestamp, String),
) -> Fit {
    let time = match time {
        Ok(time) => time,
        Err(error) => return Fit::Unreadable(error),
    };
    // `Timestamp` cannot represent the last day of the year 9999; such a time is kept as sent.
    if time == Timestamp::MAX {
        return Fit::Fits;
    }
    let (kept, canonical) = write(time);
    if kept == go_time::ZERO {
        // Go writes a time without value as null.
        return Fit::Becomes(Value::Null);
    }
    written(text, canonical)
}

fn quantity(text: &str, value: &Value) -> Fit {
    match Quantity::rewritten(text.trim()) {
        Ok(written) => {
            // A quantity is stored in its canonical form, so `1000m` comes back as `1`.
            let canonical = Value::from(written);
            if canonical == *value {
                Fit::Fits
            } else {
                Fit::Becomes(canonical)
            }
        }
        Err(error) => Fit::Unreadable(error.to_owned()),
    }
}

fn written(text: &str, canonical: String) -> Fit {
    if text == canonical {
        Fit::Fits
    } else {
        Fit::Becomes(canonical.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::builtin;

    fn check(kind: (&str, &str), object: &Value, expected: Result<(&Value, &[&str]), &str>) {
        let schema = builtin(kind.0, kind.1).unwrap();
        let mut object = object.as_object().unwrap().clone();
        match (decode(schema.root(), &mut object), expected) {
            (Ok(unknown), Ok((json, paths))) => {
                assert_eq!(
                    (Value::Object(object), &unknown[..]),
                    (
                        json.clone(),
                        &paths.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()[..]
                    )
                );
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, expected) => panic!("{got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn what_is_unknown_is_dropped_and_reported() {
        check(
            ("apps/v1", "Deployment"),
            &json!({"bogus": 1, "spec": {"template": {"spec": {"containers": [{"name": "a", "imagee": "x"}]}}}}),
            Ok((
                &json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}),
                &["bogus", "spec.template.spec.containers[0].imagee"],
            )),
        );
    }

    #[test]
    fn values_are_written_as_go_writes_them() {
        check(
            ("v1", "Pod"),
            &json!({"metadata": {"labels": {}, "annotations": null}, "spec": {"nodeSelector": {}, "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}}}]}}),
            Ok((
                &json!({"metadata": {}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}],
                    "containers": [{"name": "a", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}),
                &[],
            )),
        );
    }

    #[test]
    fn zeros_that_go_omits_are_dropped() {
        check(
            ("apps/v1", "StatefulSet"),
            &json!({"spec": {"replicas": 0, "minReadySeconds": 0, "template": {"spec": {
                "restartPolicy": "", "hostNetwork": false, "containers": [{"name": "a", "image": ""}]}}},
                "status": {"availableReplicas": 0, "readyReplicas": 0, "replicas": 0}}),
            Ok((
                &json!({"spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "a"}]}}},
                    "status": {"availableReplicas": 0, "replicas": 0}}),
                &[],
            )),
        );
    }

    #[test]
    fn nulls_among_texts_are_empty_and_bytes_are_written_on_one_line() {
        check(
            ("v1", "ConfigMap"),
            &json!({"metadata": {"finalizers": [null]}, "data": {"a": null}}),
            Ok((
                &json!({"metadata": {"finalizers": [""]}, "data": {"a": ""}}),
                &[],
            )),
        );
        check(
            ("v1", "Secret"),
            &json!({"data": {"a": "YW\r\nJj\n", "b": "YR=="}}),
            Ok((&json!({"data": {"a": "YWJj", "b": "YQ=="}}), &[])),
        );
    }

    #[test]
    fn schemas_inside_of_schemas_are_decoded() {
        let definition = |schema: Value| json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let kind = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        check(
            kind,
            &definition(json!({"items": {"type": 7}})),
            Err("cannot unmarshal number into Go struct field JSONSchemaProps."),
        );
        check(
            kind,
            &definition(json!({"additionalProperties": "x"})),
            Err("boolean or JSON schema expected"),
        );
        check(
            kind,
            &definition(
                json!({"items": {"type": "string", "unknown": 1}, "additionalProperties": true}),
            ),
            Ok((
                &definition(json!({"items": {"type": "string"}, "additionalProperties": true})),
                &[],
            )),
        );
    }

    #[test]
    fn list_with_integer_and_equal_float_is_unchanged() {
        let mut numbers = json!([[2.0, 3], [1, 1.0, 2.0], {"a": [1.0]}]);
        write_whole_numbers(&mut numbers);
        assert_eq!(numbers, json!([[2, 3], [1, 1.0, 2.0], {"a": [1]}]));
    }

    #[test]
    fn numbers_that_are_too_large_wrap_where_go_converts() {
        let schema = builtin("apps/v1", "Deployment").unwrap();
        let replicas = |number: i64| json!({"spec": {"replicas": number, "unknown": 1_i64 << 40}});
        let mut object = replicas(1 << 31);
        wrap_numbers(schema.root(), &mut object);
        assert_eq!(object, replicas(-(1 << 31)));
    }

    #[test]
    fn a_quantity_that_is_null_is_zero() {
        check(
            ("v1", "ResourceQuota"),
            &json!({"spec": {"hard": {"pods": null}}}),
            Ok((&json!({"spec": {"hard": {"pods": "0"}}}), &[])),
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let lease = |time: &str| json!({"spec": {"renewTime": time}});
        check(
            ("coordination.k8s.io/v1", "Lease"),
            &lease("2026-01-02T03:04:05Z"),
            Err("parsing time"),
        );
        let exact = lease("2026-01-02T03:04:05.123456Z");
        check(
            ("coordination.k8s.io/v1", "Lease"),
            &exact,
            Ok((&exact, &[])),
        );
        let replicas = |replicas: Value| json!({"spec": {"replicas": replicas}});
        for (wrong, text) in [
            (json!("x"), "cannot unmarshal string"),
            (json!(1.5), "number 1.5"),
            (json!(1_u64 << 40), "of type int32"),
        ] {
            check(("apps/v1", "Deployment"), &replicas(wrong), Err(text));
        }
        check(
            ("v1", "ConfigMap"),
            &json!({"data": {"a": 1}}),
            Err("json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        );
        check(
            ("v1", "ConfigMap"),
            &json!({"data": ["a"]}),
            Err(
                "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
            ),
        );
        check(
            ("apps/v1", "Deployment"),
            &json!({"spec": {"template": {"spec": {"containers": [{"ports": 1}]}}}}),
            Err(
                "into Go struct field Container.spec.template.spec.containers.ports of type []v1.ContainerPort",
            ),
        );
        check(
            ("v1", "Secret"),
            &json!({"data": {"a": "%"}}),
            Err("illegal base64"),
        );
    }
}
