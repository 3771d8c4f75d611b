//! Messages as they are written.

/// Writes one field behind the other.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Begins with some bytes.
    pub(super) fn behind(prefix: &[u8]) -> Self {
        Self {
            bytes: prefix.to_vec(),
        }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn tag(&mut self, number: u32, wire_type: u64) {
        put_varint(&mut self.bytes, u64::from(number) << 3 | wire_type);
    }

    pub(super) fn varint(&mut self, number: u32, value: i64) {
        self.tag(number, 0);
        put_varint(&mut self.bytes, value.cast_unsigned());
    }

    pub(super) fn double(&mut self, number: u32, value: f64) {
        self.tag(number, 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn payload(&mut self, number: u32, payload: &[u8]) {
        self.tag(number, 2);
        put_varint(&mut self.bytes, payload.len() as u64);
        self.bytes.extend_from_slice(payload);
    }

    /// Writes a field that is a message itself.
    ///
    /// The length comes first and is known last; one byte is reserved for it, which most need.
    pub(super) fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        self.tag(number, 2);
        let at = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - at - 1;
        match u8::try_from(length) {
            Ok(short @ ..0x80) => self.bytes[at] = short,
            _ => {
                let mut long = Vec::with_capacity(5);
                put_varint(&mut long, length as u64);
                // Moves what was written. Messages of 128 bytes and more are few, except for those around everything.
                self.bytes.splice(at..=at, long);
            }
        }
    }
}

fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
