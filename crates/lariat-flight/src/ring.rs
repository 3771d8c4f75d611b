//! The file: a header and a ring of frames.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::frame::{self, ALIGNMENT, Frame};

/// The bytes before the ring.
pub(crate) const HEADER: usize = 64;

/// The first bytes of a file.
const MAGIC: [u8; 8] = *b"LARIATFR";

/// The version of the format.
const FORMAT: u32 = 1;

/// A file that takes frames.
#[derive(Debug)]
pub(crate) struct Ring {
    file: File,
    /// The length of the file.
    len: u64,
    /// Where the next frame goes.
    at: u64,
    sequence: u64,
    session: u32,
}

/// What the first bytes of a file say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Known {
        len: u64,
    },
    /// Of a later version of the format.
    Later {
        format: u32,
    },
    /// Nothing is in the file, or not even all of the header was written.
    Empty,
    Foreign,
}

impl Header {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if magic != &MAGIC[..magic.len()] {
            // A file that was made and never written to has its length, and zeros.
            return if bytes.iter().all(|byte| *byte == 0) {
                Self::Empty
            } else {
                Self::Foreign
            };
        }
        let (Some(format), Some(len)) = (array(bytes, 8), array(bytes, 16)) else {
            return Self::Empty;
        };
        match u32::from_le_bytes(format) {
            FORMAT => Self::Known {
                len: u64::from_le_bytes(len),
            },
            0 => Self::Empty,
            format => Self::Later { format },
        }
    }

    fn encode(len: u64) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&len.to_le_bytes());
        bytes
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Ring {
    /// Opens a file of a length, behind what it has; one of another length or format is kept as `FILE.1`.
    pub(crate) fn open(path: &Path, len: u64) -> io::Result<Self> {
        let mut file = open(path)?;
        let mut bytes = Vec::new();
        // Only the header first: what is no recording may be large.
        (&mut file).take(HEADER as u64).read_to_end(&mut bytes)?;
        match Header::read(&bytes) {
            Header::Foreign => {
                return Err(io::Error::other(
                    "the file is there and is no flight recording; it is left as it is",
                ));
            }
            Header::Known { len: known } if known == len => {
                file.read_to_end(&mut bytes)?;
            }
            Header::Empty => bytes.clear(),
            Header::Known { .. } | Header::Later { .. } => {
                fs::rename(path, kept(path))?;
                file = open(path)?;
                bytes.clear();
            }
        }
        if bytes.is_empty() {
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&Header::encode(len))?;
        }
        file.set_len(len)?;
        let frames = || frame::find(&bytes);
        let last = frames().max_by_key(|(_, frame)| frame.sequence);
        let end = last.map_or(HEADER, |(at, frame)| at + frame.len());
        Ok(Self {
            file,
            len,
            at: end as u64,
            sequence: last.map_or(0, |(_, frame)| frame.sequence),
            session: frames().map(|(_, frame)| frame.session).max().unwrap_or(0) + 1,
        })
    }

    /// Appends records, over the oldest if there is no more room.
    pub(crate) fn append(&mut self, payload: &[u8], records: u32, lost: u32) -> io::Result<()> {
        let bytes = Frame {
            sequence: self.sequence + 1,
            records,
            lost,
            session: self.session,
            payload,
        }
        .encode();
        if self.at + bytes.len() as u64 > self.len {
            self.wrap()?;
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.write_all(&bytes)?;
        // Only now: what failed is tried at the same place, so that no half frame stays for long.
        self.at += bytes.len() as u64;
        self.sequence += 1;
        Ok(())
    }

    /// Goes on at the beginning, and removes what is left of the last lap at the end: there is a gap behind it.
    fn wrap(&mut self) -> io::Result<()> {
        let rest = self.len.saturating_sub(self.at);
        self.file.seek(SeekFrom::Start(self.at))?;
        io::copy(&mut io::repeat(0).take(rest), &mut self.file)?;
        self.at = HEADER as u64;
        Ok(())
    }
}

const _: () = assert!(HEADER.is_multiple_of(ALIGNMENT));

/// Opens a file that only its owner can read, for this process alone.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let text = "another recorder writes the file; every process needs one of its own";
            return Err(io::Error::other(text));
        }
        // Not every file system has locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

/// Returns where a file of another length or format is kept.
fn kept(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}
