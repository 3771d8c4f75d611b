//! Reading a recording.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::code::{Decoder, Field};
use crate::frame::{self, Frame};
use crate::record::Record;
use crate::ring::Header;

/// What a file of a [`FlightRecorder`](crate::FlightRecorder) has, also after a crash.
#[derive(Debug)]
pub struct Recording {
    bytes: Vec<u8>,
    /// Where frames begin, in the order in which they were written.
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
        /// Why.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is no flight recording", path.display())]
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
    /// Nothing was recorded yet, or nothing of it is readable.
    #[error(
        "{} has no records; they are written a second after they come, so look again once the process runs", path.display()
    )]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// A start of the process that records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session<'a> {
    /// Counts the starts in this file.
    pub number: u32,
    /// When its first record was made, by the wall clock.
    pub began: SystemTime,
    /// The process.
    pub process: u32,
    /// The version of Lariat.
    pub version: &'a str,
}

/// Something in a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    /// In which session.
    pub session: Session<'a>,
    /// How long after its beginning.
    pub at: Duration,
    /// What.
    pub what: What<'a>,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq)]
pub enum What<'a> {
    /// A record.
    Record(Record<'a>),
    /// Records were made here and dropped, because they came faster than they could be written.
    Lost {
        /// How many.
        records: u32,
    },
    /// Frames are missing here: they are damaged.
    Missing {
        /// How many.
        frames: u64,
    },
    /// The rest of a frame cannot be read: it was written by another version of Lariat.
    Unknown {
        /// How many records that are.
        records: u32,
    },
}

impl Recording {
    /// Reads a file; what is damaged in it is left out.
    ///
    /// # Errors
    ///
    /// The file is not there or cannot be read, is no recording, or has no record that can be read.
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

    /// Finds the frames in the bytes of a file; where there are none, the header says what it is.
    pub(crate) fn of(bytes: Vec<u8>) -> Result<Self, Header> {
        let mut frames: Vec<(u64, usize)> = frame::find(&bytes)
            .map(|(at, frame)| (frame.sequence, at))
            .collect();
        frames.sort_unstable();
        // Half of an older ring can be left where one with the same numbers was written.
        frames.dedup_by_key(|(sequence, _)| *sequence);
        let header = Header::read(&bytes);
        if frames.is_empty() || matches!(header, Header::Later { .. }) {
            return Err(header);
        }
        let frames = frames.into_iter().map(|(_, at)| at).collect();
        Ok(Self { bytes, frames })
    }

    /// Returns what is in the recording, in the order in which it was recorded.
    ///
    /// Times may go back by a little where threads met. The first entry is not the first of its session, if the ring has
    /// come round.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
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

    /// Returns how many frames could be read.
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
    /// When the first record was made.
    first: i64,
    /// Records that are to come.
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
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
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
        Some(Entry { session, at, what })
    }
}

#[cfg(test)]
#[path = "recording_tests.rs"]
mod tests;
