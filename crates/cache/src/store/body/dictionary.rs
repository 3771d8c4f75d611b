//! Compression with a dictionary of what the objects of a kind have in common.

use std::cell::RefCell;
use std::fmt;

use zstd_safe::{CCtx, CDict, DCtx, DDict, compress_bound, train_from_buffer};

/// The maximum size of a dictionary. Larger ones gain little and use the processor's cache.
const SIZE: usize = 32 * 1024;

/// zstd's fastest regular level: with a dictionary, higher ones gain little.
const LEVEL: i32 = 1;

/// A dictionary, prepared for compression and decompression.
pub(in crate::store) struct Dictionary {
    compress: CDict<'static>,
    decompress: DDict<'static>,
    /// The memory that it takes, in bytes.
    bytes: usize,
}

thread_local! {
    /// Contexts are large and keep no state between calls: one per thread serves all dictionaries.
    static PACKER: RefCell<(CCtx<'static>, Vec<u8>)> = RefCell::new((CCtx::create(), Vec::new()));
    static UNPACKER: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

impl Dictionary {
    /// Trains a dictionary from samples; `None` if they have too little in common.
    pub(super) fn train(samples: &[Box<[u8]>]) -> Option<Self> {
        let sizes: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
        let mut buffer = vec![0; SIZE];
        let length = train_from_buffer(&mut buffer[..], &samples.concat(), &sizes).ok()?;
        let content = &buffer[..length];
        Some(Self {
            compress: CDict::try_create(content, LEVEL)?,
            decompress: DDict::try_create(content)?,
            // Both contain a copy; the compressor's tables are about as large again.
            bytes: 3 * length,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Compresses a text; `None` if that does not make it smaller.
    pub(super) fn pack(&self, json: &[u8]) -> Option<Box<[u8]>> {
        PACKER.with_borrow_mut(|(context, scratch)| {
            // The buffer is reused, and the result copied in its exact size.
            scratch.clear();
            scratch.reserve(compress_bound(json.len()));
            let packed = context.compress_using_cdict(scratch, json, &self.compress);
            packed
                .is_ok_and(|length| length < json.len())
                .then(|| scratch[..].into())
        })
    }

    /// Decompresses a text of a known length.
    pub(super) fn unpack(&self, packed: &[u8], length: usize) -> Option<Vec<u8>> {
        let mut json = Vec::with_capacity(length);
        let unpacked = UNPACKER.with_borrow_mut(|context| {
            context.decompress_using_ddict(&mut json, packed, &self.decompress)
        });
        (unpacked == Ok(length)).then_some(json)
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
