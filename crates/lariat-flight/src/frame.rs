//! Frames: the units of writing, each readable without any other.

use crate::check::crc32;

/// The first bytes of a frame; the digit is the version of the format.
const MAGIC: [u8; 4] = *b"LRF1";

/// The size of a frame's header, in bytes.
pub(crate) const HEAD: usize = 32;

/// Frames begin at multiples of this, which speeds up the search.
pub(crate) const ALIGNMENT: usize = 8;

/// The maximum size of a payload, in bytes; a larger one is damaged.
const LARGEST: usize = 1 << 20;

/// A frame as it is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// The number of the frame, which keeps counting from one session to the next.
    pub(crate) sequence: u64,
    /// The number of records.
    pub(crate) records: u32,
    /// The number of records that were lost before it.
    pub(crate) lost: u32,
    /// The number of the process start that wrote it.
    pub(crate) session: u32,
    /// The encoded records.
    pub(crate) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Returns the bytes of the frame, padded to the alignment.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.payload.len() + ALIGNMENT);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&(self.payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.records.to_le_bytes());
        bytes.extend_from_slice(&self.lost.to_le_bytes());
        bytes.extend_from_slice(&self.session.to_le_bytes());
        // The checksum covers the header too, so a frame with a damaged number is not taken for another one.
        let check = crc32(&[&bytes, self.payload]);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes.extend_from_slice(self.payload);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    /// Reads the frame at the beginning of some bytes, if it is complete and intact.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        if head[..4] != MAGIC {
            return None;
        }
        let len = word(head, 4) as usize;
        // The length is not trusted before the checksum is verified, and computing that takes time.
        let payload = rest.get(..len).filter(|_| len <= LARGEST)?;
        let (checked, check) = head.split_at(HEAD - 4);
        if word(check, 0) != crc32(&[checked, payload]) {
            return None;
        }
        Some(Self {
            sequence: u64::from(word(head, 8)) | u64::from(word(head, 12)) << 32,
            records: word(head, 16),
            lost: word(head, 20),
            session: word(head, 24),
            payload,
        })
    }

    /// Returns its size in the file, in bytes.
    pub(crate) fn len(&self) -> usize {
        (HEAD + self.payload.len()).next_multiple_of(ALIGNMENT)
    }
}

/// Returns the little-endian number at a position.
fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    u32::from_le_bytes(bytes.unwrap_or_default())
}

/// Finds all intact frames in the bytes of a file, with their positions.
pub(crate) fn find(bytes: &[u8]) -> impl Iterator<Item = (usize, Frame<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let here = at;
            match Frame::read(&bytes[here..]) {
                Some(frame) => {
                    at += frame.len();
                    return Some((here, frame));
                }
                // Damaged, or the padding at the end of the ring. The next frame may begin anywhere.
                None => at += ALIGNMENT,
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(sequence: u64, payload: &[u8]) -> Frame<'_> {
        Frame {
            sequence,
            records: 3,
            lost: 7,
            session: 2,
            payload,
        }
    }

    #[test]
    fn frames_are_found_between_whatever_else_is_there() {
        let (first, second) = (frame(1, b"first"), frame(u64::MAX, b"the second"));
        let mut bytes = vec![0; 16];
        bytes.extend(first.encode());
        bytes.extend(&first.encode()[..24]);
        bytes.extend(second.encode());
        let found: Vec<_> = find(&bytes).map(|(_, frame)| frame).collect();
        assert_eq!(found, [first, second]);
    }

    #[test]
    fn a_frame_of_which_any_bit_is_wrong_is_none() {
        let bytes = frame(1, b"payload").encode();
        let used = HEAD + b"payload".len();
        for bit in 0..8 * used {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(find(&bytes).count(), 0, "bit {bit}");
        }
    }
}
