//! Messages of protobuf as they are written.

use serde_json::Value;

/// A protobuf message under construction; zero and missing values are left out.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

impl Message {
    /// Writes a message.
    pub(super) fn of(write: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut message = Self::default();
        write(&mut message);
        message.0
    }

    /// Adds a text, if the value is one.
    pub(super) fn text(&mut self, number: u32, value: &Value) {
        self.str(number, value.as_str().unwrap_or_default());
    }

    pub(super) fn str(&mut self, number: u32, text: &str) {
        if !text.is_empty() {
            self.bytes(number, text.as_bytes());
        }
    }

    /// Adds each text of a list, or the one text there is.
    pub(super) fn texts(&mut self, number: u32, value: &Value) {
        let list = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        for text in list.iter().filter_map(Value::as_str) {
            // One of them may be empty.
            self.bytes(number, text.as_bytes());
        }
    }

    pub(super) fn flag(&mut self, number: u32, value: &Value) {
        // Defaults are left out in proto3, here and below.
        if value == true {
            self.key(number, VARINT);
            self.varint(1);
        }
    }

    pub(super) fn whole(&mut self, number: u32, value: &Value) {
        if let Some(whole) = value.as_i64().filter(|whole| *whole != 0) {
            self.key(number, VARINT);
            // A negative number takes ten bytes, which is how protobuf writes an int64.
            self.varint(whole as u64);
        }
    }

    pub(super) fn double(&mut self, number: u32, value: &Value) {
        if let Some(double) = value.as_f64().filter(|double| *double != 0.0) {
            self.key(number, FIXED64);
            self.0.extend(double.to_le_bytes());
        }
    }

    /// Adds a message, be it empty.
    pub(super) fn nested(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let nested = Self::of(write);
        self.bytes(number, &nested);
    }

    /// Adds a message for each member of an object: its name, and its encoded value.
    pub(super) fn named(&mut self, number: u32, object: &Value, write: impl Fn(&mut Self, &Value)) {
        for (name, value) in object.as_object().into_iter().flatten() {
            self.nested(number, |named| {
                named.str(1, name);
                named.nested(2, |message| write(message, value));
            });
        }
    }

    /// Adds any value: as YAML, which JSON is.
    pub(super) fn any(&mut self, number: u32, value: &Value) {
        if !value.is_null() {
            // The second field of `Any` is YAML, which JSON is a part of.
            self.nested(number, |any| any.str(2, &value.to_string()));
        }
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.key(number, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn key(&mut self, number: u32, wire_type: u32) {
        self.varint(u64::from((number << 3) | wire_type));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}
