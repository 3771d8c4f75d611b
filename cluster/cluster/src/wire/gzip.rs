//! Compression of large answers.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Answers smaller than this go as they are, as on a real server.
// As defaultGzipThresholdBytes and defaultGzipContentEncodingLevel in endpoints/handlers/responsewriters.
pub(super) const THRESHOLD: usize = 128 * 1024;

/// The level of a real server: time matters more than the last few bytes.
const LEVEL: Compression = Compression::new(1);

const IN_MEMORY: &str = "writing to memory cannot fail";

/// Compresses a document that is kept and sent often.
pub(crate) fn compress(document: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), LEVEL);
    encoder.write_all(document).expect(IN_MEMORY);
    encoder.finish().expect(IN_MEMORY).into()
}

/// Expands compressed bytes.
pub(crate) fn expand(compressed: &[u8]) -> Bytes {
    let mut document = Vec::new();
    let mut decoder = GzDecoder::new(compressed);
    decoder
        .read_to_end(&mut document)
        .expect("it was compressed by this program");
    document.into()
}

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
        let encoder = self.encoder.as_mut()?;
        for piece in self.pieces.by_ref() {
            encoder.write_all(&piece).expect(IN_MEMORY);
            let compressed = std::mem::take(encoder.get_mut());
            if !compressed.is_empty() {
                return Some(compressed.into());
            }
        }
        let rest = self.encoder.take()?.finish().expect(IN_MEMORY);
        Some(rest.into())
    }
}
