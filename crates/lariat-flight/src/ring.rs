//! The file: a header and a ring of frames.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::frame::{self, ALIGNMENT, Frame};

/// The size of the header, in bytes.
pub(crate) const HEADER: usize = 64;

/// The first bytes of the file.
const MAGIC: [u8; 8] = *b"LARIATFR";

/// The version of the format.
const FORMAT: u32 = 1;

/// A file to which frames are written.
#[derive(Debug)]
pub(crate) struct Ring {
    /// The file.
    file: File,
    /// The size of the file.
    len: u64,
    /// The position of the next frame.
    at: u64,
    /// The number of the last frame.
    sequence: u64,
    /// The number of this process start.
    session: u32,
}

/// The header of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// This version of the format.
    Known { len: u64 },
    /// A later version of the format.
    Later { format: u32 },
    /// The file is empty, or its header was not written completely.
    Empty,
    /// The file is not a recording.
    Foreign,
}

impl Header {
    /// Reads the header at the beginning of a file.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if magic != &MAGIC[..magic.len()] {
            // A file that was created and never written to has its full size, with zeros.
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

    /// Returns the bytes of the header.
    fn encode(len: u64) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..24].copy_from_slice(&len.to_le_bytes());
        bytes
    }
}

/// Returns the bytes at a position.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl Ring {
    /// Opens a file of some size, after its last frame.
    ///
    /// A file of another size or format is renamed to `FILE.1`.
    pub(crate) fn open(path: &Path, len: u64) -> io::Result<Self> {
        let mut file = open(path)?;
        let mut bytes = Vec::new();
        // Only the header first, because a file that is not a recording may be large.
        (&mut file).take(HEADER as u64).read_to_end(&mut bytes)?;
        match Header::read(&bytes) {
            Header::Foreign => {
                return Err(io::Error::other(
                    "the file exists and is not a flight recording; it is left unchanged",
                ));
            }
            Header::Known { len: known } if known == len => {
                file.read_to_end(&mut bytes)?;
            }
            Header::Empty => bytes.clear(),
            Header::Known { .. } | Header::Later { .. } => {
                // Kept, because an older recording may still be needed. It replaces an earlier file of that name.
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
        // The frame with the highest number is the last one written, wherever it is in the ring.
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

    /// Appends a frame, over the oldest ones if the end is reached.
    pub(crate) fn append(&mut self, payload: &[u8], records: u32, lost: u32) -> io::Result<()> {
        let bytes = Frame {
            sequence: self.sequence + 1,
            records,
            lost,
            session: self.session,
            payload,
        }
        .encode();
        // A frame is never split, because readers search for complete frames.
        if self.at + bytes.len() as u64 > self.len {
            self.wrap()?;
        }
        self.file.seek(SeekFrom::Start(self.at))?;
        self.file.write_all(&bytes)?;
        // Only after success: the next frame overwrites a frame that failed halfway.
        self.at += bytes.len() as u64;
        self.sequence += 1;
        Ok(())
    }

    /// Continues at the beginning, and clears the rest of the file.
    ///
    /// Otherwise frames of the previous lap would remain there, after a gap.
    fn wrap(&mut self) -> io::Result<()> {
        let rest = self.len.saturating_sub(self.at);
        self.file.seek(SeekFrom::Start(self.at))?;
        io::copy(&mut io::repeat(0).take(rest), &mut self.file)?;
        self.at = HEADER as u64;
        Ok(())
    }
}

const _: () = assert!(HEADER.is_multiple_of(ALIGNMENT));

/// Opens a file that only its owner can read, and locks it for this process.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Not truncated: the recording of the crashed process must survive the restart.
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let text = "another recorder is writing to the file; each process needs its own file";
            return Err(io::Error::other(text));
        }
        // Some file systems do not support locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

/// Returns the new name of a file of another size or format.
fn kept(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}
