//! The fields of a message as they are written: numbers with payloads.

use super::error::ProtobufError;

/// The magic number at the beginning of every body.
pub(super) const PREFIX: &[u8] = b"k8s\0";

/// A message of which field after field is read.
#[derive(Debug, Clone)]
pub(super) struct Message<'a> {
    rest: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    /// A text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn field(&mut self) -> Result<(u32, Payload<'a>), ProtobufError> {
        let tag = self.varint()?;
        let wire_type = (tag & 7) as u8;
        let number = tag >> 3;
        let legal = u32::try_from(number).ok();
        // The limits of protobuf for numbers of fields.
        let Some(legal) = legal.filter(|number| (1..1 << 29).contains(number)) else {
            return Err(ProtobufError::Tag { number, wire_type });
        };
        let payload = match wire_type {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| ProtobufError::Cut)?;
                Payload::Bytes(self.take(length)?)
            }
            5 => {
                let _: [u8; 4] = self.array()?;
                Payload::Fixed32
            }
            // Groups, which Kubernetes never had, among others.
            _ => return Err(ProtobufError::WireType(wire_type)),
        };
        Ok((legal, payload))
    }

    /// Reads the next packed number.
    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0_u64;
        // Ten bytes at most. Bits of the tenth beyond the 64th are lost, as in Go.
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(ProtobufError::Cut)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ProtobufError::Cut)?;
        self.rest = rest;
        Ok(*taken)
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u32, Payload<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // Nothing behind an error can be understood.
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Payload<'a> {
    pub(super) fn varint(self) -> Result<u64, ProtobufError> {
        match self {
            Self::Varint(value) => Ok(value),
            other => Err(ProtobufError::OtherWireType(other.wire_type())),
        }
    }

    pub(super) fn double(self) -> Result<f64, ProtobufError> {
        match self {
            Self::Fixed64(bits) => Ok(f64::from_bits(bits)),
            other => Err(ProtobufError::OtherWireType(other.wire_type())),
        }
    }

    pub(super) fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(ProtobufError::OtherWireType(other.wire_type())),
        }
    }

    fn wire_type(self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        let fields: Result<Vec<_>, _> = Message::of(bytes).collect();
        let written = match fields {
            Ok(fields) => format!("{fields:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(written, expected, "{bytes:?}");
    }

    #[test]
    fn fields_are_numbers_with_payloads() {
        check(&[], "[]");
        check(&[0x08, 0x96, 0x01], "[(1, Varint(150))]");
        check(&[0x12, 2, b'h', b'i'], "[(2, Bytes([104, 105]))]");
        check(
            &[0x1d, 1, 2, 3, 4, 0x21, 1, 0, 0, 0, 0, 0, 0, 0],
            "[(3, Fixed32), (4, Fixed64(1))]",
        );
        check(&[0x12, 3, b'h', b'i'], "unexpected EOF");
        check(
            &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            "unexpected EOF",
        );
        check(&[0x21, 1, 0], "unexpected EOF");
        check(&[0x08], "unexpected EOF");
        check(&[0x00, 1], "proto: illegal tag 0 (wire type 0)");
        check(&[0x0b], "proto: illegal wireType 3");
        check(&[0x0f], "proto: illegal wireType 7");
        let mut long = vec![0x08];
        long.extend([0xff; 10]);
        check(&long, "proto: integer overflow");
    }
}
