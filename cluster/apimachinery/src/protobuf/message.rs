//! A message read as the type it is of.

use serde_json::{Map, Value};

use super::envelope::Envelope;
use super::error::{DEPTH, ProtobufError};
use super::scalar::{scalar, varint};
use super::wire::{Message, PREFIX, Payload};
use crate::schema::{Field, Scalar, SchemaAlternative, Type, TypeRef, Wire};

/// Reads messages of a type with fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    typed: TypeRef<'a>,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(typed: TypeRef<'a>, depth: usize) -> Result<Self, ProtobufError> {
        if depth < DEPTH {
            Ok(Self { typed, depth })
        } else {
            Err(ProtobufError::TooDeep)
        }
    }

    /// Adds the fields of a message to an object.
    ///
    /// Fields that the type does not have are skipped.
    pub(super) fn read(
        self,
        message: &[u8],
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        self.read_inside(&[], message, object)
    }

    /// Reads a message that JSON has no object for.
    ///
    /// Its fields are members of the object around it.
    fn read_inside(
        self,
        outer: &[u32],
        message: &[u8],
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        for field in Message::of(message) {
            let (number, payload) = field?;
            let Some((field, wire)) = self.find(outer, number) else {
                continue;
            };
            // More numbers mean a message in between that JSON does not have.
            let read = if wire.numbers.len() == outer.len() + 1 {
                self.member(field, wire, payload, object)
            } else {
                payload.bytes().and_then(|message| {
                    self.read_inside(&wire.numbers[..=outer.len()], message, object)
                })
            };
            read.map_err(|error| match error {
                ProtobufError::OtherWireType(wire_type) => ProtobufError::Field {
                    wire_type,
                    field: field.name.to_string(),
                },
                other => other,
            })?;
        }
        Ok(())
    }

    /// Returns the field with a number, or a field of the message with the number.
    fn find(self, outer: &[u32], number: u32) -> Option<(&'a Field, &'a Wire)> {
        let Some(Type::Struct(fields)) = self.typed.get() else {
            return None;
        };
        fields.fields().iter().find_map(|field| {
            let wire = field.wire.as_ref()?;
            let inside = wire.numbers.strip_prefix(outer)?;
            (inside.first() == Some(&number)).then_some((field, wire))
        })
    }

    fn member(
        self,
        field: &Field,
        wire: &Wire,
        payload: Payload<'_>,
        object: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let name = field.name.as_ref();
        let reader = FieldReader {
            typed: self.typed.at(field.type_id),
            owner: self.typed,
            or: wire.or,
            depth: self.depth + 1,
        };
        // Taken out and put back, because a repeated field adds to what was read before.
        let value = reader.read(payload, object.remove(name))?;
        let is_left_out = match reader.typed.get() {
            Some(Type::Scalar(scalar)) => field.leaves_out(*scalar, &value),
            _ => value.is_null(),
        };
        if !is_left_out {
            object.insert(name.to_owned(), value);
        }
        Ok(())
    }
}

/// Reads the value of a field.
#[derive(Debug, Clone, Copy)]
struct FieldReader<'a> {
    typed: TypeRef<'a>,
    /// The type that has the field; schemas are found by it.
    owner: TypeRef<'a>,
    or: Option<SchemaAlternative>,
    depth: usize,
}

impl<'a> FieldReader<'a> {
    fn with(self, typed: TypeRef<'a>) -> Self {
        Self { typed, ..self }
    }

    fn deeper(self) -> Self {
        Self {
            depth: self.depth + 1,
            ..self
        }
    }

    /// Reads the value of a field; repeated fields are appended to the value before.
    fn read(self, payload: Payload<'_>, before: Option<Value>) -> Result<Value, ProtobufError> {
        Ok(match self.typed.get() {
            Some(Type::List(_)) => {
                // Each item of a list is a field of its own with the same number.
                let mut items = match before {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                };
                self.with(self.typed.item()).items(payload, &mut items)?;
                Value::Array(items)
            }
            Some(Type::Map(map)) => {
                let below = self.with(self.typed.at(map.value));
                let (key, value) = below.entry(payload.bytes()?)?;
                let mut entries = members_of(before);
                entries.insert(key, value);
                Value::Object(entries)
            }
            Some(Type::Struct(_)) => {
                let mut object = members_of(before);
                let reader = Reader::new(self.typed, self.depth)?;
                // A message that comes twice is merged, as protobuf demands.
                reader.read(payload.bytes()?, &mut object)?;
                Value::Object(object)
            }
            Some(Type::Scalar(of)) => scalar(*of, payload)?,
            Some(Type::Any) | None => match self.or {
                Some(or) => self.schema_or(or, payload.bytes()?)?,
                None => self.raw(payload.bytes()?)?,
            },
        })
    }

    /// Reads an item of a list, or several packed numbers.
    fn items(self, payload: Payload<'_>, items: &mut Vec<Value>) -> Result<(), ProtobufError> {
        match (self.typed.get(), payload) {
            (
                Some(Type::Scalar(of @ (Scalar::Bool | Scalar::Int32 | Scalar::Int64))),
                // Go's code writes no packed numbers, but reads them.
                Payload::Bytes(packed),
            ) => {
                let mut packed = Message::of(packed);
                while !packed.is_empty() {
                    items.push(varint(*of, packed.varint()?));
                }
            }
            _ => items.push(self.read(payload, None)?),
        }
        Ok(())
    }

    /// Reads an entry of a map, which is a message of its own.
    fn entry(self, message: &[u8]) -> Result<(String, Value), ProtobufError> {
        // A missing key or value of an entry is the empty one.
        let (mut key, mut value) = (String::new(), Payload::Bytes(&[]));
        for field in Message::of(message) {
            match field? {
                (1, payload) => key = String::from_utf8_lossy(payload.bytes()?).into_owned(),
                (2, payload) => value = payload,
                _ => {}
            }
        }
        let below = self.deeper();
        let value = match self.typed.get() {
            Some(Type::List(_)) => below.list(1, value.bytes()?)?,
            _ => below.read(value, None)?,
        };
        Ok((key, value))
    }

    /// Reads a message that is there only because it holds a list.
    fn list(self, number: u32, message: &[u8]) -> Result<Value, ProtobufError> {
        let mut items = Vec::new();
        for field in Message::of(message) {
            match field? {
                (each, payload) if each == number => {
                    self.with(self.typed.item()).items(payload, &mut items)?;
                }
                _ => {}
            }
        }
        Ok(Value::Array(items))
    }

    /// Reads a value of any type: JSON in a message, or an object in an envelope.
    fn raw(self, message: &[u8]) -> Result<Value, ProtobufError> {
        let mut raw: &[u8] = &[];
        for field in Message::of(message) {
            if let (1, payload) = field? {
                raw = payload.bytes()?;
            }
        }
        Ok(match raw {
            [] => Value::Null,
            // What is embedded may be protobuf itself; its depth goes on from here, or an object of nested envelopes
            // would be unbounded.
            raw if raw.starts_with(PREFIX) => {
                let envelope = Envelope::open_at(raw, self.deeper().depth)?;
                Value::Object(envelope.object()?)
            }
            raw => serde_json::from_slice(raw)?,
        })
    }

    /// Reads a schema or its substitute.
    fn schema_or(self, or: SchemaAlternative, message: &[u8]) -> Result<Value, ProtobufError> {
        let schema = Self {
            or: None,
            ..self.with(self.owner).deeper()
        };
        let (mut read, mut items, mut allowed) = (None, Vec::new(), false);
        for field in Message::of(message) {
            match (or, field?) {
                (SchemaAlternative::Bool, (1, payload)) => allowed = payload.varint()? != 0,
                (SchemaAlternative::Bool, (2, payload)) | (_, (1, payload)) => {
                    // In a message of `SchemaAlternative::Bool` the schema is the second field, in the others the
                    // first.
                    read = Some(schema.read(payload, read)?);
                }
                (SchemaAlternative::List, (2, payload)) => items.push(schema.read(payload, None)?),
                (SchemaAlternative::Strings, (2, payload)) => {
                    items.push(scalar(Scalar::String, payload)?)
                }
                _ => {}
            }
        }
        Ok(match (or, read) {
            (SchemaAlternative::List | SchemaAlternative::Strings, _) if !items.is_empty() => {
                Value::Array(items)
            }
            (_, Some(schema)) => schema,
            // Without a schema it is a bool; `false` is not written and therefore the empty message.
            (SchemaAlternative::Bool, None) => allowed.into(),
            (_, None) => Value::Null,
        })
    }
}

fn members_of(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}
