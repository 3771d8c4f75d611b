//! A generator of objects for tests.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::schema::{Scalar, SchemaAlternative, Type, TypeRef, builtin};

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

    fn either(&mut self, schema: TypeRef<'_>, typed: TypeRef<'_>, or: SchemaAlternative) -> Value {
        if matches!(typed.get(), Some(Type::Map(_))) {
            return json!({"a": self.either(schema, typed.any(), or)});
        }
        match or {
            _ if self.random.bool() => self.object(schema, 9),
            SchemaAlternative::Bool => self.random.bool().into(),
            SchemaAlternative::List => json!([self.object(schema, 9), {}]),
            SchemaAlternative::Strings => json!(["a", ""]),
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
