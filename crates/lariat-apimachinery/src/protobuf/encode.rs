//! Test encoder of protobuf bodies, and a generator of objects.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::wire::PREFIX;
use crate::schema::{Or, Scalar, Type, TypeRef, builtin};

/// Writes an object in its envelope.
#[must_use]
pub fn body(object: &Value) -> Vec<u8> {
    let text = |name: &str| object[name].as_str().expect("the object has a type");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let schema = builtin(api_version, kind).expect("the kind is a built-in one");
    let type_meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())];
    let unknown = [
        bytes(1, &type_meta.concat()),
        bytes(2, &message(schema.root(), object)),
    ];
    [PREFIX, &unknown.concat()].concat()
}

pub(super) fn varint(mut value: u64) -> Vec<u8> {
    let mut written = Vec::new();
    while value >= 0x80 {
        written.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    written.push(value as u8);
    written
}

pub(super) fn bytes(number: u32, payload: &[u8]) -> Vec<u8> {
    let length = varint(payload.len() as u64);
    [varint(u64::from(number) << 3 | 2), length, payload.to_vec()].concat()
}

fn number(number: u32, value: i64) -> Vec<u8> {
    [
        varint(u64::from(number) << 3),
        varint(value.cast_unsigned()),
    ]
    .concat()
}

fn message(typed: TypeRef<'_>, object: &Value) -> Vec<u8> {
    let Some(Type::Struct(fields)) = typed.get() else {
        panic!("{typed:?} has no fields");
    };
    let mut written = Vec::new();
    for field in fields.fields() {
        let (Some(value), Some(wire)) = (object.get(&*field.name), &field.wire) else {
            continue;
        };
        let (last, outer) = wire.numbers.split_last().expect("a field has a number");
        let at = typed.at(field.type_id);
        let mut field = match wire.or {
            Some(or) => either(typed, or, at, *last, value),
            None => value_of(at, *last, value),
        };
        for number in outer.iter().rev() {
            field = bytes(*number, &field);
        }
        written.extend(field);
    }
    written
}

fn value_of(typed: TypeRef<'_>, at: u32, value: &Value) -> Vec<u8> {
    let list = || value.as_array().expect("the value is a list").iter();
    let map = || value.as_object().expect("the value is a map").iter();
    match typed.get() {
        Some(Type::List(_)) => list()
            .flat_map(|item| value_of(typed.item(), at, item))
            .collect(),
        Some(Type::Map(of)) => map()
            .flat_map(|(key, value)| {
                let below = typed.at(of.value);
                let value = match below.get() {
                    Some(Type::List(_)) => bytes(2, &value_of(below, 1, value)),
                    _ => value_of(below, 2, value),
                };
                bytes(at, &[bytes(1, key.as_bytes()), value].concat())
            })
            .collect(),
        Some(Type::Struct(_)) => bytes(at, &message(typed, value)),
        Some(Type::Scalar(of)) => scalar(*of, at, value),
        Some(Type::Any) | None => bytes(at, &bytes(1, value.to_string().as_bytes())),
    }
}

fn scalar(of: Scalar, at: u32, value: &Value) -> Vec<u8> {
    let text = || value.as_str().expect("the value is a text");
    match of {
        Scalar::String => bytes(at, text().as_bytes()),
        Scalar::Bool => number(at, i64::from(value == true)),
        Scalar::Int32 | Scalar::Int64 => number(at, value.as_i64().expect("it is a number")),
        Scalar::Number => {
            let double = value.as_f64().expect("it is a number").to_le_bytes();
            [varint(u64::from(at) << 3 | 1), double.to_vec()].concat()
        }
        Scalar::Bytes => bytes(at, &BASE64.decode(text()).expect("the text is base64")),
        Scalar::Time | Scalar::MicroTime => {
            let time: Timestamp = text().parse().expect("the text is a time");
            let nanos = i64::from(time.subsec_nanosecond());
            bytes(
                at,
                &[number(1, time.as_second()), number(2, nanos)].concat(),
            )
        }
        Scalar::IntOrString => match value {
            Value::String(text) => bytes(at, &[number(1, 1), bytes(3, text.as_bytes())].concat()),
            other => bytes(at, &number(2, other.as_i64().expect("it is a number"))),
        },
        Scalar::Quantity => bytes(at, &bytes(1, text().as_bytes())),
    }
}

/// Writes a schema or its substitute; `owner` is the type of schemas.
fn either(owner: TypeRef<'_>, or: Or, typed: TypeRef<'_>, at: u32, value: &Value) -> Vec<u8> {
    if matches!(typed.get(), Some(Type::Map(_))) {
        let entries = value.as_object().into_iter().flatten();
        let entry = |(key, value): (&String, &Value)| {
            let value = either(owner, or, typed.any(), 2, value);
            bytes(at, &[bytes(1, key.as_bytes()), value].concat())
        };
        return entries.flat_map(entry).collect();
    }
    let schema = if or == Or::Bool { 2 } else { 1 };
    let written = match value {
        Value::Bool(allows) => number(1, i64::from(*allows)),
        Value::Array(items) => items
            .iter()
            .flat_map(|item| match item {
                Value::String(text) => bytes(2, text.as_bytes()),
                schema => bytes(2, &message(owner, schema)),
            })
            .collect(),
        schema_itself => bytes(schema, &message(owner, schema_itself)),
    };
    bytes(at, &written)
}

/// Generates an object of a built-in kind that survives a round trip.
#[must_use]
pub fn make(api_version: &str, kind: &str, seed: u64) -> Value {
    let schema = builtin(api_version, kind).expect("the kind is a built-in one");
    let mut maker = Maker {
        random: fastrand::Rng::with_seed(seed),
    };
    let mut object = maker.object(schema.root(), 0);
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object
}

/// Makes objects of a type, no two of a seed the same.
struct Maker {
    random: fastrand::Rng,
}

impl Maker {
    /// Generates an object that survives a round trip; deep ones have few members.
    fn object(&mut self, typed: TypeRef<'_>, depth: u32) -> Value {
        let Some(Type::Struct(fields)) = typed.get() else {
            panic!("{typed:?} has no fields");
        };
        let mut object = Map::new();
        for field in fields.fields() {
            if field.wire.is_none() || (depth > 0 && self.random.u32(..=depth * 2) > 0) {
                continue;
            }
            let wire = field.wire.as_ref();
            let value = match wire.and_then(|wire| wire.or) {
                Some(or) => self.either(typed, typed.at(field.type_id), or),
                None => self.value(typed.at(field.type_id), depth),
            };
            object.insert(field.name.to_string(), value);
        }
        Value::Object(object)
    }

    fn either(&mut self, schema: TypeRef<'_>, typed: TypeRef<'_>, or: Or) -> Value {
        if matches!(typed.get(), Some(Type::Map(_))) {
            return json!({"a": self.either(schema, typed.any(), or)});
        }
        match or {
            _ if self.random.bool() => self.object(schema, 9),
            Or::Bool => self.random.bool().into(),
            Or::List => json!([self.object(schema, 9), {}]),
            Or::Strings => json!(["a", ""]),
        }
    }

    fn value(&mut self, typed: TypeRef<'_>, depth: u32) -> Value {
        match typed.get() {
            Some(Type::List(_)) => {
                let count = self.random.usize(1..3);
                let mut item = || self.value(typed.item(), depth + 1);
                (0..count).map(|_| item()).collect()
            }
            Some(Type::Map(of)) => {
                let mut below = || self.value(typed.at(of.value), depth + 1);
                json!({"": below(), "a": below()})
            }
            Some(Type::Struct(_)) => self.object(typed, depth + 1),
            Some(Type::Scalar(scalar)) => self.scalar(*scalar),
            Some(Type::Any) | None => json!({"any": [self.random.u8(..), null, "thing"]}),
        }
    }

    /// Zeros are left out of some fields, so there are none.
    fn scalar(&mut self, scalar: Scalar) -> Value {
        let random = &mut self.random;
        match scalar {
            Scalar::String => format!("text {}", random.char(..)).into(),
            Scalar::Bool => true.into(),
            Scalar::Int32 => (random.i32(..) | 1).into(),
            Scalar::Int64 => (random.i64(..) | 1).into(),
            Scalar::Number => (f64::from(random.i32(..)) + 0.5).into(),
            Scalar::Bytes => BASE64.encode([random.u8(..), 0xff]).into(),
            Scalar::Time => time(random.u32(..), 0, 0).into(),
            Scalar::MicroTime => time(random.u32(..), random.i32(0..1_000_000) * 1000, 6).into(),
            Scalar::IntOrString if random.bool() => "http".into(),
            Scalar::IntOrString => random.i32(..).into(),
            Scalar::Quantity => format!("{}Mi", random.u16(..)).into(),
        }
    }
}

fn time(seconds: u32, nanos: i32, digits: usize) -> String {
    let time = Timestamp::new(i64::from(seconds), nanos).expect("the year is before 2106");
    format!("{time:.digits$}")
}
