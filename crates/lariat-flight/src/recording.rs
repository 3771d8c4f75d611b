//! Reads a recording.

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
/// use lariat_flight::{Recording, EntryBody};
///
/// # fn example() -> Result<(), lariat_flight::ReadError> {
/// let recording = Recording::read("/var/run/op.flight".as_ref())?;
/// for entry in recording.entries() {
///     if let EntryBody::Record(record) = entry.body {
///         println!("{:?} {record:?}", entry.at);
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Recording {
    /// The bytes of the file.
    bytes: Vec<u8>,
    /// The positions of the frames, in the order in which they were written.
    frames: Vec<usize>,
}

/// The error of reading a file as a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The I/O error.
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
        "{} has format {format}, which only a later version of Lariat can read", path.display()
    )]
    Later {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The file contains no readable record.
    #[error(
        "{} has no records yet; records are written within a second while the process runs", path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// One run of the recorded process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// The number of the run in this file.
    pub number: u32,
    /// The time of its first record, on the wall clock.
    pub began: SystemTime,
    /// The process id.
    pub process: u32,
    /// The version of Lariat.
    pub version: &'a str,
}

/// An entry of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordingEntry<'a> {
    /// The session of the entry.
    pub session: Session<'a>,
    /// The time since the beginning of the session.
    pub at: Duration,
    /// The contents.
    pub body: EntryBody<'a>,
}

/// The contents of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryBody<'a> {
    /// A record.
    Record(Record<'a>),
    /// Records were dropped here because they arrived faster than they were written.
    Lost {
        /// The number of records.
        records: u32,
    },
    /// Frames are missing here because they are damaged.
    Missing {
        /// The number of frames.
        frames: u64,
    },
    /// The rest of a frame cannot be decoded; another version of Lariat wrote it.
    Unknown {
        /// The number of records.
        records: u32,
    },
}

impl Recording {
    /// Reads a file; damaged parts are skipped.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not a recording, or contains no readable record.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat_flight::{ReadError, Recording};
    ///
    /// let error = Recording::read("/no/such/file".as_ref()).unwrap_err();
    /// assert!(matches!(error, ReadError::Unreadable { .. }));
    /// assert_eq!(error.to_string(), "cannot read /no/such/file");
    /// ```
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

    /// Finds the frames in the bytes of a file; returns the header if there are none.
    pub(crate) fn of(bytes: Vec<u8>) -> Result<Self, Header> {
        let mut frames: Vec<(u64, usize)> = frame::find(&bytes)
            // The file does not tell where the ring begins, so the order follows from the numbers.
            .map(|(at, frame)| (frame.sequence, at))
            .collect();
        frames.sort_unstable();
        // After a change of the ring, parts of an older one may remain, with frames of the same numbers.
        frames.dedup_by_key(|(sequence, _)| *sequence);
        let header = Header::read(&bytes);
        if frames.is_empty() || matches!(header, Header::Later { .. }) {
            return Err(header);
        }
        let frames = frames.into_iter().map(|(_, at)| at).collect();
        Ok(Self { bytes, frames })
    }

    /// Iterates over the entries in the order in which they were recorded.
    ///
    /// Times may go back a little, because threads record concurrently. If the ring has wrapped, the first entry is not
    /// the first of its session.
    pub fn entries(&self) -> impl Iterator<Item = RecordingEntry<'_>> {
        let mut before: Option<u64> = None;
        self.frames().flat_map(move |frame| {
            // The numbers of intact frames are consecutive; a gap is a damaged frame.
            let expected = before.map_or(frame.sequence, |before| before + 1);
            before = Some(frame.sequence);
            let missing = frame.sequence.saturating_sub(expected);
            Entries::of(frame, missing)
        })
    }

    /// Iterates over the frames.
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

/// Iterates over the entries of a frame.
struct Entries<'a> {
    /// Decodes the records.
    decoder: Decoder<'a>,
    /// The session; `None` if it cannot be decoded.
    session: Option<Session<'a>>,
    /// The time of the last record, in nanoseconds.
    nanos: i64,
    /// The time of the first record, in nanoseconds.
    first: i64,
    /// The number of records that follow.
    rest: u32,
    /// The number of frames that are missing before this one.
    missing: u64,
    /// The number of records that were lost before this frame.
    lost: u32,
}

impl<'a> Entries<'a> {
    /// Begins to decode a frame.
    fn of(frame: Frame<'a>, missing: u64) -> Self {
        let mut decoder = Decoder::new(frame.payload);
        let session = session(frame.session, &mut decoder);
        Self {
            nanos: 0,
            // Missing and lost records get the time of the first record after them.
            first: decoder.clone().signed().unwrap_or(0),
            decoder,
            session,
            rest: frame.records,
            missing,
            lost: frame.lost,
        }
    }

    /// Decodes the next record.
    fn record(&mut self) -> Option<Record<'a>> {
        let nanos = self.nanos.checked_add(self.decoder.signed()?)?;
        let record = Record::get(&mut self.decoder)?;
        self.nanos = nanos;
        Some(record)
    }
}

/// Decodes the session of a frame.
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
            EntryBody::Missing { frames }
        } else if self.lost > 0 {
            let records = std::mem::take(&mut self.lost);
            EntryBody::Lost { records }
        } else if self.rest == 0 {
            return None;
        } else if let Some(record) = self.record() {
            self.rest -= 1;
            EntryBody::Record(record)
        } else {
            // Without its length, an unknown record hides where the next one begins.
            let records = std::mem::take(&mut self.rest);
            EntryBody::Unknown { records }
        };
        let nanos = match what {
            EntryBody::Missing { .. } | EntryBody::Lost { .. } => self.first,
            _ => self.nanos,
        };
        let at = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        Some(RecordingEntry {
            session,
            at,
            body: what,
        })
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
