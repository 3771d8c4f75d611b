//! Compression of large answers.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Answers smaller than this go as they are, as on a real server.
pub(super) const THRESHOLD: usize = 128 * 1024;

/// The level of a real server: time matters more than the last few bytes.
const LEVEL: Compression = Compression::new(1);

/// Compresses a body piece by piece.
pub(super) struct Gzip<I> {
    pieces: I,
    /// Holds what is compressed and not yet taken; `None` once the body is complete.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl<I: Iterator<Item = Bytes>> Gzip<I> {
    pub(super) fn new(pieces: I) -> Self {
        Self {
            pieces,
            encoder: Some(GzEncoder::new(Vec::new(), LEVEL)),
        }
    }
}

impl<I: Iterator<Item = Bytes>> Iterator for Gzip<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        const WRITE: &str = "writing to memory cannot fail";
        let encoder = self.encoder.as_mut()?;
        for piece in self.pieces.by_ref() {
            encoder.write_all(&piece).expect(WRITE);
            let compressed = std::mem::take(encoder.get_mut());
            if !compressed.is_empty() {
                return Some(compressed.into());
            }
        }
        let rest = self.encoder.take()?.finish().expect(WRITE);
        Some(rest.into())
    }
}
