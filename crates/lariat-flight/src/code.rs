//! Encodes numbers and names as bytes, and decodes them.

use std::hash::BuildHasher;
use std::time::Duration;

use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::{Array, SmallVec};

/// The maximum length of a name, in bytes; the rest is cut off.
///
/// Kubernetes allows 253 bytes for each part of a key; handler names are the program's.
const LONGEST_NAME: usize = 1024;

/// The maximum number of elements of a list; a longer one is damaged.
const LONGEST_LIST: u64 = 64 * 1024;

/// Encodes numbers and names; each name is written once.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// The encoded bytes.
    pub(crate) bytes: Vec<u8>,
    /// The names in `bytes`, each once.
    names: HashTable<Name>,
    /// Hashes the names.
    hasher: DefaultHashBuilder,
}

/// The position of a name in the encoded bytes.
#[derive(Debug)]
struct Name {
    /// The hash of the name.
    hash: u64,
    /// The position of its first byte.
    offset: u32,
    /// The length in bytes.
    len: u32,
    /// The number by which it is referred to, from 1.
    number: u32,
}

/// Decodes what an [`Encoder`] wrote.
///
/// It neither panics nor reads past the end, whatever the bytes are.
#[derive(Debug, Clone)]
pub(crate) struct Decoder<'a> {
    /// The bytes that are left.
    rest: &'a [u8],
    /// The names so far, in order.
    names: Vec<&'a str>,
}

/// A value that can be a part of a record.
pub(crate) trait Field<'a>: Sized {
    /// Encodes the value.
    fn put(&self, to: &mut Encoder);
    /// Decodes a value; `None` if the bytes do not encode one.
    fn get(from: &mut Decoder<'a>) -> Option<Self>;
}

impl Encoder {
    /// Writes a byte.
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Writes a number, seven bits per byte, the lowest first.
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Writes a number that may be negative.
    pub(crate) fn signed(&mut self, number: i64) {
        // Zigzag: small negative numbers become small positive ones.
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }

    /// Writes a name, or the number of an earlier equal one.
    fn name(&mut self, name: &str) {
        // The limit keeps a frame below the largest size that readers accept.
        let name = &name[..name.floor_char_boundary(LONGEST_NAME)];
        let hash = self.hasher.hash_one(name);
        let bytes = &self.bytes;
        // Names are compared with the encoded bytes, so they are stored once.
        let is_same = |known: &Name| {
            let at = known.offset as usize;
            bytes.get(at..at + known.len as usize) == Some(name.as_bytes())
        };
        if let Some(known) = self.names.find(hash, is_same) {
            let number = u64::from(known.number);
            return self.number(number);
        }
        // Zero announces a new name.
        self.number(0);
        self.number(name.len() as u64);
        let known = Name {
            hash,
            offset: self.bytes.len() as u32,
            len: name.len() as u32,
            number: self.names.len() as u32 + 1,
        };
        self.names.insert_unique(hash, known, |known| known.hash);
        self.bytes.extend_from_slice(name.as_bytes());
    }

    /// Returns the encoded bytes and starts over, without names.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.names.clear();
        // The next frame is probably as large, so it gets the same capacity.
        let room = self.bytes.capacity();
        std::mem::replace(&mut self.bytes, Vec::with_capacity(room))
    }
}

impl<'a> Decoder<'a> {
    /// Creates a decoder of some bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            names: Vec::new(),
        }
    }

    /// Returns whether all bytes have been read.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        // Ten bytes at most: a longer number is damaged.
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number that may be negative.
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads a name.
    fn name(&mut self) -> Option<&'a str> {
        match self.number()? {
            0 => {
                let len = usize::try_from(self.number()?).ok()?;
                let (name, rest) = self.rest.split_at_checked(len)?;
                self.rest = rest;
                let name = std::str::from_utf8(name).ok()?;
                self.names.push(name);
                Some(name)
            }
            number => {
                let at = usize::try_from(number - 1).ok()?;
                self.names.get(at).copied()
            }
        }
    }
}

impl<'a> Field<'a> for &'a str {
    fn put(&self, to: &mut Encoder) {
        to.name(self);
    }

    fn get(from: &mut Decoder<'a>) -> Option<Self> {
        from.name()
    }
}

impl Field<'_> for bool {
    fn put(&self, to: &mut Encoder) {
        to.byte(u8::from(*self));
    }

    fn get(from: &mut Decoder<'_>) -> Option<Self> {
        match from.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Field<'_> for u16 {
    fn put(&self, to: &mut Encoder) {
        to.number((*self).into());
    }

    fn get(from: &mut Decoder<'_>) -> Option<Self> {
        from.number()?.try_into().ok()
    }
}

impl Field<'_> for u32 {
    fn put(&self, to: &mut Encoder) {
        to.number((*self).into());
    }

    fn get(from: &mut Decoder<'_>) -> Option<Self> {
        from.number()?.try_into().ok()
    }
}

impl Field<'_> for u64 {
    fn put(&self, to: &mut Encoder) {
        to.number(*self);
    }

    fn get(from: &mut Decoder<'_>) -> Option<Self> {
        from.number()
    }
}

impl Field<'_> for Duration {
    /// As nanoseconds; a duration above five centuries is cut.
    fn put(&self, to: &mut Encoder) {
        to.number(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX));
    }

    fn get(from: &mut Decoder<'_>) -> Option<Self> {
        from.number().map(Self::from_nanos)
    }
}

impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn put(&self, to: &mut Encoder) {
        self.is_some().put(to);
        self.iter().for_each(|some| some.put(to));
    }

    fn get(from: &mut Decoder<'a>) -> Option<Self> {
        if bool::get(from)? {
            T::get(from).map(Some)
        } else {
            Some(None)
        }
    }
}

impl<'a, T: Field<'a>, A: Array<Item = T>> Field<'a> for SmallVec<A> {
    fn put(&self, to: &mut Encoder) {
        to.number(self.len() as u64);
        self.iter().for_each(|each| each.put(to));
    }

    fn get(from: &mut Decoder<'a>) -> Option<Self> {
        // Without the limit, damaged bytes could ask for any amount of memory.
        let len = from.number().filter(|len| *len <= LONGEST_LIST)?;
        (0..len).map(|_| T::get(from)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Encoder)) -> Vec<u8> {
        let mut encoder = Encoder::default();
        write(&mut encoder);
        encoder.take()
    }

    #[test]
    fn numbers_of_all_sizes_come_back() {
        for number in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, u64::MAX - 1, u64::MAX] {
            let bytes = written(|to| to.number(number));
            assert_eq!(Decoder::new(&bytes).number(), Some(number));
        }
        for number in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            let bytes = written(|to| to.signed(number));
            assert_eq!(Decoder::new(&bytes).signed(), Some(number));
        }
    }

    #[test]
    fn a_name_is_written_once() {
        let bytes = written(|to| {
            ["shop/a", "shop/b", "shop/a"]
                .iter()
                .for_each(|n| to.name(n))
        });
        assert_eq!(bytes.len(), 8 + 8 + 1);
        let mut decoder = Decoder::new(&bytes);
        assert_eq!(decoder.name(), Some("shop/a"));
        assert_eq!(decoder.name(), Some("shop/b"));
        assert_eq!(decoder.name(), Some("shop/a"));
        assert!(decoder.is_empty());
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let long = "ä".repeat(LONGEST_NAME);
        let bytes = written(|to| {
            to.byte(0);
            to.name(&format!("x{long}"));
        });
        let mut decoder = Decoder::new(&bytes[1..]);
        let name = decoder.name().unwrap();
        assert_eq!(name.len(), LONGEST_NAME - 1);
        assert!(long.starts_with(&name[1..]));
    }

    #[test]
    fn an_endless_number_is_refused() {
        assert_eq!(Decoder::new(&[0xFF; 20]).number(), None);
        assert_eq!(Decoder::new(&[0x80]).number(), None);
    }
}
