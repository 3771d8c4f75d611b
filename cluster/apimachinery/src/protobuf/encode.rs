//! Objects written as messages.
//!
//! A value that is not of its type is left out; the server stores no such objects.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use jiff::Timestamp;
use serde_json::Value;

use super::wire::PREFIX;
use super::writer::Writer;
use crate::object::Object;
use crate::schema::{self, Scalar, Schema, SchemaAlternative, Type, TypeRef};

/// Encodes an object in its envelope; `None` if its kind has no message type.
///
/// ```
/// use lariat_apimachinery::object::Object;
/// use lariat_apimachinery::protobuf::encode;
/// use serde_json::json;
///
/// let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"color": "red"}});
/// let object: Object = object.as_object().cloned().unwrap_or_default();
/// let body = encode(&object).expect("the kind is built in");
/// assert!(body.starts_with(b"k8s\0"));
/// ```
#[must_use]
pub fn encode(object: &Object) -> Option<Vec<u8>> {
    let schema = schema_of(object)?;
    Some(envelope(object, |writer| {
        fields(writer, schema.root(), object)
    }))
}

/// Writes a list in its envelope, with items that are not in it yet.
///
/// `None` if its kind is not in the table of types.
#[must_use]
pub fn encode_list(list: &Object, items: impl Iterator<Item = Object>) -> Option<Vec<u8>> {
    /// The field number of the items of every list.
    const ITEMS: u32 = 2;
    let schema = schema_of(list)?;
    let item = schema.root().member("items")?.item();
    Some(envelope(list, |writer| {
        fields(writer, schema.root(), list);
        for object in items {
            writer.message(ITEMS, |writer| fields(writer, item, &object));
        }
    }))
}

/// Writes an event of a watch behind its length, as watches are streamed.
///
/// `None` if the kind of the object is not in the table of types.
#[must_use]
pub fn encode_event(event: &str, object: &Object) -> Option<Vec<u8>> {
    let object = encode(object)?;
    // Room for the length, which is known at the end.
    let mut writer = Writer::behind(&[0; 4]);
    writer.payload(1, event.as_bytes());
    // The object of an event is a `RawExtension` whose bytes are an envelope of their own.
    writer.message(2, |raw| raw.payload(1, &object));
    let mut frame = writer.into_bytes();
    let length = u32::try_from(frame.len() - 4).ok()?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    Some(frame)
}

fn text<'a>(object: &'a Object, member: &str) -> &'a str {
    object
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn schema_of(object: &Object) -> Option<Schema> {
    let kind = text(object, "kind");
    // Options, `Status` and the like are served in every group, with the group's version.
    schema::builtin(text(object, "apiVersion"), kind).or_else(|| schema::of_every_group(kind))
}

fn envelope(object: &Object, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::behind(PREFIX);
    writer.message(1, |type_meta| {
        type_meta.payload(1, text(object, "apiVersion").as_bytes());
        type_meta.payload(2, text(object, "kind").as_bytes());
    });
    writer.message(2, write);
    // The encoding and the type of the content, which are those of the message.
    writer.payload(3, b"");
    writer.payload(4, b"");
    writer.into_bytes()
}

fn fields(writer: &mut Writer, typed: TypeRef<'_>, object: &Object) {
    fields_inside(writer, typed, object, &[]);
}

/// Writes the fields of a message, or of one in it that JSON has no object for.
fn fields_inside(writer: &mut Writer, typed: TypeRef<'_>, object: &Object, outer: &[u32]) {
    let mut inside = Vec::new();
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let Some(field) = typed.field(name) else {
            continue;
        };
        let wire = field.wire.as_ref();
        let numbers = wire.and_then(|wire| wire.numbers.strip_prefix(outer));
        match (wire.and_then(|wire| wire.or), numbers) {
            (Some(or), Some([last])) => {
                either(writer, typed, or, (typed.at(field.type_id), *last), value);
            }
            (None, Some([last])) => of_type(writer, typed.at(field.type_id), *last, value),
            (_, Some([next, ..])) if !inside.contains(next) => inside.push(*next),
            _ => {}
        }
    }
    // Messages without an object in JSON, such as the `handler` of a probe, have their fields in the object around
    // them. All of one number are collected into one message.
    for number in inside {
        let path = [outer, &[number]].concat();
        writer.message(number, |writer| fields_inside(writer, typed, object, &path));
    }
}

/// Writes a value of some type as the field with a number.
fn of_type(writer: &mut Writer, typed: TypeRef<'_>, number: u32, value: &Value) {
    match (typed.get(), value) {
        // Never packed: Kubernetes' generated code is proto2.
        (Some(Type::List(_)), Value::Array(items)) => {
            items
                .iter()
                .for_each(|item| of_type(writer, typed.item(), number, item));
        }
        (Some(Type::Map(map)), Value::Object(entries)) => {
            let below = typed.at(map.value);
            for (key, value) in entries {
                writer.message(number, |entry| {
                    entry.payload(1, key.as_bytes());
                    match below.get() {
                        Some(Type::List(_)) => {
                            // A list as the value of a map is wrapped in a message, since a repeated field cannot be
                            // repeated.
                            entry.message(2, |list| of_type(list, below, 1, value));
                        }
                        _ => of_type(entry, below, 2, value),
                    }
                });
            }
        }
        (Some(Type::Struct(_)), Value::Object(object)) => {
            writer.message(number, |writer| fields(writer, typed, object));
        }
        (Some(Type::Struct(_)), Value::Null) => writer.message(number, |_| {}),
        (Some(Type::Scalar(of)), value) => {
            scalar(writer, *of, number, value);
        }
        (Some(Type::Any) | None, value) => {
            writer.message(number, |raw| raw.payload(1, value.to_string().as_bytes()));
        }
        _ => {}
    }
}

/// Writes a scalar; `None` if the value is none of its type.
fn scalar(writer: &mut Writer, of: Scalar, number: u32, value: &Value) -> Option<()> {
    match of {
        Scalar::String => writer.payload(number, value.as_str()?.as_bytes()),
        Scalar::Bool => writer.varint(number, value.as_bool()?.into()),
        Scalar::Int32 | Scalar::Int64 => writer.varint(number, value.as_i64()?),
        Scalar::Number => writer.double(number, value.as_f64()?),
        Scalar::Bytes => writer.payload(number, &BASE64.decode(value.as_str()?).ok()?),
        Scalar::Time | Scalar::MicroTime => {
            let time: Timestamp = value.as_str()?.parse().ok()?;
            // Euclidean, since nanoseconds of a protobuf time are never negative.
            let whole = time.as_nanosecond().div_euclid(1_000_000_000);
            let nanos = time.as_nanosecond().rem_euclid(1_000_000_000);
            let (seconds, nanos) = (i64::try_from(whole).ok()?, i64::try_from(nanos).ok()?);
            writer.message(number, |writer| {
                writer.varint(1, seconds);
                writer.varint(2, nanos);
            });
        }
        Scalar::IntOrString => match value {
            Value::String(text) => writer.message(number, |writer| {
                // The type: 0 for a number, 1 for a text. Go writes all three fields in both cases.
                writer.varint(1, 1);
                writer.varint(2, 0);
                writer.payload(3, text.as_bytes());
            }),
            other => {
                let whole = other.as_i64()?;
                writer.message(number, |writer| {
                    writer.varint(1, 0);
                    writer.varint(2, whole);
                    // Go's generated code writes these even if empty.
                    writer.payload(3, b"");
                });
            }
        },
        Scalar::Quantity => {
            let amount = value.as_str()?;
            writer.message(number, |writer| writer.payload(1, amount.as_bytes()));
        }
    }
    Some(())
}

/// Writes a schema or its substitute; `owner` is the type of schemas.
fn either(
    writer: &mut Writer,
    owner: TypeRef<'_>,
    or: SchemaAlternative,
    (typed, number): (TypeRef<'_>, u32),
    value: &Value,
) {
    if let (Some(Type::Map(_)), Value::Object(entries)) = (typed.get(), value) {
        for (key, value) in entries {
            writer.message(number, |entry| {
                entry.payload(1, key.as_bytes());
                either(entry, owner, or, (typed.any(), 2), value);
            });
        }
        return;
    }
    writer.message(number, |writer| match value {
        Value::Bool(allows) => writer.varint(1, (*allows).into()),
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(schema) => {
                        writer.message(2, |below| fields(below, owner, schema))
                    }
                    text => writer.payload(2, text.as_str().unwrap_or_default().as_bytes()),
                }
            }
        }
        Value::Object(schema) if or == SchemaAlternative::Bool => {
            // A schema allows what it describes.
            writer.varint(1, 1);
            writer.message(2, |below| fields(below, owner, schema));
        }
        Value::Object(schema) => writer.message(1, |below| fields(below, owner, schema)),
        _ => {}
    });
}
