//! The records that are not in the file yet.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime};

use lariat_core::clock;

use crate::code::{Encoder, Field};
use crate::record::Record;

/// The approximate maximum size of a frame's records, in bytes.
const FRAME: usize = 32 * 1024;

/// Complete frames, and the frame that is being filled.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// The records of the frame that is being filled.
    encoder: Encoder,
    /// The number of records in the encoder.
    records: u32,
    /// The time of the very first record, on both clocks.
    began: Option<(Instant, SystemTime)>,
    /// The time of the last record, in nanoseconds since the very first one.
    last: i64,
    /// The complete frames, oldest first.
    sealed: VecDeque<Sealed>,
    /// The number of bytes in `sealed`, at most `limit`.
    bytes: usize,
    /// The maximum number of bytes in `sealed`.
    limit: usize,
    /// The size in bytes at which a frame is complete.
    full: usize,
    /// How many records were lost and are not reported in a frame yet.
    lost: u64,
}

/// A complete frame.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// The encoded records.
    pub(crate) payload: Vec<u8>,
    /// The number of records.
    pub(crate) records: u32,
}

impl Buffer {
    /// Creates an empty buffer of at most `limit` bytes, for a ring of `ring` bytes.
    pub(crate) fn new(ring: u64, limit: usize) -> Self {
        Self {
            encoder: Encoder::default(),
            records: 0,
            began: None,
            last: 0,
            sealed: VecDeque::new(),
            bytes: 0,
            limit,
            // A small ring gets small frames, so that a new frame overwrites only a part of the history.
            full: FRAME.min((ring / 8) as usize),
            lost: 0,
        }
    }

    /// Adds a record; returns whether the writer must be notified.
    ///
    /// That is so for the first record of a frame, and for the record that completes a frame.
    pub(crate) fn push(&mut self, at: Instant, record: &Record<'_>) -> bool {
        let is_first = self.records == 0;
        let (began, wall) = *self.began.get_or_insert_with(|| (at, clock::now()));
        // A frame begins with its first record, so an idle process writes nothing.
        if is_first {
            self.begin_frame(wall);
        }
        // Concurrent callers read the clock before they get the lock, so a record may be earlier than the previous one.
        // The difference is signed for that reason.
        let since = at.saturating_duration_since(began);
        let nanos = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
        self.encoder.signed(nanos - self.last);
        self.last = nanos;
        record.put(&mut self.encoder);
        self.records += 1;
        let is_full = self.encoder.bytes.len() >= self.full;
        if is_full {
            self.seal();
            self.forget_oldest();
        }
        is_first || is_full
    }

    /// Writes what makes a frame readable without the others: start, process and version.
    fn begin_frame(&mut self, began: SystemTime) {
        let since_epoch = began.duration_since(SystemTime::UNIX_EPOCH);
        // Every frame repeats the session, because its first frame may have been overwritten.
        since_epoch.unwrap_or(Duration::ZERO).put(&mut self.encoder);
        std::process::id().put(&mut self.encoder);
        env!("CARGO_PKG_VERSION").put(&mut self.encoder);
        self.last = 0;
    }

    /// Completes the frame that is being filled.
    fn seal(&mut self) {
        if self.records == 0 {
            return;
        }
        let payload = self.encoder.take();
        self.bytes += payload.len();
        // The encoder also forgets its names, so the next frame writes its own.
        let records = std::mem::take(&mut self.records);
        self.sealed.push_back(Sealed { payload, records });
    }

    /// Drops the oldest frames while there are too many bytes; counts their records.
    fn forget_oldest(&mut self) {
        while self.bytes > self.limit
            && let Some(oldest) = self.sealed.pop_front()
        {
            self.bytes -= oldest.payload.len();
            // The oldest records are dropped, because the latest ones explain a crash.
            self.lost += u64::from(oldest.records);
        }
    }

    /// Returns whether a frame is complete.
    pub(crate) fn has_full(&self) -> bool {
        !self.sealed.is_empty()
    }

    /// Completes the frame that is being filled; returns the number of frames.
    pub(crate) fn seal_all(&mut self) -> usize {
        self.seal();
        self.sealed.len()
    }

    /// Removes the oldest frame; also returns how many records were lost before it.
    pub(crate) fn pop(&mut self) -> Option<(Sealed, u32)> {
        let oldest = self.sealed.pop_front()?;
        self.bytes -= oldest.payload.len();
        // The frame reports all records that were lost before it.
        let lost = u32::try_from(self.lost).unwrap_or(u32::MAX);
        self.lost = 0;
        Some((oldest, lost))
    }

    /// Counts removed records that could not be written.
    pub(crate) fn lose(&mut self, records: u64) {
        self.lost += records;
    }
}
