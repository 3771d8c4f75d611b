//! Reading a recording.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::code::{Decoder, Field};
use crate::frame::{self, Frame};
use crate::record::Record;
use crate::ring::Header;

/// The contents of a flight recorder's file, also after a crash.
///
/// ```no_run
/// use lariat_flight::{Recording, What};
///
/// # fn example() -> Result<(), lariat_flight::ReadError> {
/// let recording = Recording::read("/var/run/op.flight".as_ref())?;
/// for entry in recording.entries() {
///     if let What::Record(record) = entry.what {
///         println!("{:?} {record:?}", entry.at);
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Recording {
    bytes: Vec<u8>,
    /// Positions of frames, in the order in which they were written.
    frames: Vec<usize>,
}

/// Why a file cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read at all.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file is not a recording.
    #[error("{} is not a flight recording", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A later version of Lariat wrote the file.
    #[error(
        "{} has format {format}, which a later version of Lariat wrote; read it with that one", path.display()
    )]
    Later {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// Nothing was recorded yet, or no record is readable.
    #[error(
        "{} has no records; they are written a second after they come, so look again once the process runs", path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// A start of the recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// The number of the start in this file.
    pub number: u32,
    /// When its first record was written, by the wall clock.
    pub began: SystemTime,
    /// The process id.
    pub process: u32,
    /// The version of Lariat.
    pub version: &'a str,
}

/// An entry of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingEntry<'a> {
    /// Its session.
    pub session: Session<'a>,
    /// How long after the beginning of the session.
    pub at: Duration,
    /// The contents.
    pub what: What<'a>,
}

/// The contents of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum What<'a> {
    /// A record.
    Record(Record<'a>),
    /// Records were dropped here, because they came faster than they could be written.
    Lost {
        /// The number of records.
        records: u32,
    },
    /// Frames are missing here: they are damaged.
    Missing {
        /// The number of frames.
        frames: u64,
    },
    /// The rest of a frame is unknown: another version of Lariat wrote it.
    Unknown {
        /// The number of records.
        records: u32,
    },
}

impl Recording {
    /// Reads a file; damaged parts are skipped.
    ///
    /// ```
    /// use lariat_flight::{ReadError, Recording};
    ///
    /// let error = Recording::read("/no/such/file".as_ref()).unwrap_err();
    /// assert!(matches!(error, ReadError::Unreadable { .. }));
    /// assert_eq!(error.to_string(), "cannot read /no/such/file");
    /// ```
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not a recording, or has no readable record.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let bytes = fs::read(path).map_err(|source| ReadError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::of(bytes).map_err(|header| {
            let path = path.to_owned();
            match header {
                Header::Foreign => ReadError::Foreign { path },
                Header::Later { format } => ReadError::Later { path, format },
                Header::Empty | Header::Known { .. } => ReadError::Empty { path },
            }
        })
    }

    /// Finds the frames in the bytes of a file; without any, returns the header.
    pub(crate) fn of(bytes: Vec<u8>) -> Result<Self, Header> {
        let mut frames: Vec<(u64, usize)> = frame::find(&bytes)
            .map(|(at, frame)| (frame.sequence, at))
            .collect();
        frames.sort_unstable();
        // A part of an older ring can remain where frames with the same numbers were written.
        frames.dedup_by_key(|(sequence, _)| *sequence);
        let header = Header::read(&bytes);
        if frames.is_empty() || matches!(header, Header::Later { .. }) {
            return Err(header);
        }
        let frames = frames.into_iter().map(|(_, at)| at).collect();
        Ok(Self { bytes, frames })
    }

    /// Returns the entries, in the order in which they were recorded.
    ///
    /// Times may go back a little where threads met. If the ring has wrapped, the first entry is not the first of its
    /// session.
    pub fn entries(&self) -> impl Iterator<Item = RecordingEntry<'_>> {
        let mut before: Option<u64> = None;
        self.frames().flat_map(move |frame| {
            let expected = before.map_or(frame.sequence, |before| before + 1);
            before = Some(frame.sequence);
            let missing = frame.sequence.saturating_sub(expected);
            Entries::of(frame, missing)
        })
    }

    fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let at = |at: &usize| frame::find(&self.bytes[*at..]).next();
        self.frames.iter().filter_map(at).map(|(_, frame)| frame)
    }

    /// Returns the number of readable frames.
    #[must_use]
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }
}

/// The entries of a frame.
struct Entries<'a> {
    decoder: Decoder<'a>,
    session: Option<Session<'a>>,
    nanos: i64,
    /// The time of the first record.
    first: i64,
    /// The number of records that follow.
    rest: u32,
    missing: u64,
    lost: u32,
}

impl<'a> Entries<'a> {
    fn of(frame: Frame<'a>, missing: u64) -> Self {
        let mut decoder = Decoder::new(frame.payload);
        let session = session(frame.session, &mut decoder);
        Self {
            nanos: 0,
            first: decoder.clone().signed().unwrap_or(0),
            decoder,
            session,
            rest: frame.records,
            missing,
            lost: frame.lost,
        }
    }

    fn record(&mut self) -> Option<Record<'a>> {
        let nanos = self.nanos.checked_add(self.decoder.signed()?)?;
        let record = Record::get(&mut self.decoder)?;
        self.nanos = nanos;
        Some(record)
    }
}

fn session<'a>(number: u32, decoder: &mut Decoder<'a>) -> Option<Session<'a>> {
    let since_epoch = Duration::get(decoder)?;
    Some(Session {
        number,
        began: SystemTime::UNIX_EPOCH.checked_add(since_epoch)?,
        process: Field::get(decoder)?,
        version: Field::get(decoder)?,
    })
}

impl<'a> Iterator for Entries<'a> {
    type Item = RecordingEntry<'a>;

    fn next(&mut self) -> Option<RecordingEntry<'a>> {
        let session = self.session?;
        let what = if self.missing > 0 {
            let frames = std::mem::take(&mut self.missing);
            What::Missing { frames }
        } else if self.lost > 0 {
            let records = std::mem::take(&mut self.lost);
            What::Lost { records }
        } else if self.rest == 0 {
            return None;
        } else if let Some(record) = self.record() {
            self.rest -= 1;
            What::Record(record)
        } else {
            let records = std::mem::take(&mut self.rest);
            What::Unknown { records }
        };
        let nanos = match what {
            What::Missing { .. } | What::Lost { .. } => self.first,
            _ => self.nanos,
        };
        let at = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        Some(RecordingEntry { session, at, what })
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
