//! Streams: data that is too large to be sealed in one piece.
//!
//! A stream begins with the byte 2, the id of the data key (4 bytes) and a salt (12 bytes). Parts follow. Each has four
//! bytes (little-endian), whose lowest 31 bits are the length of the part and whose highest bit marks the last part,
//! and then the ciphertext with its tag. The nonce of a part is its number and the mark of the last part. So parts that
//! were changed, are missing or are in another order cannot be opened.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::context::Context;
use crate::data_key::{DataKey, Salt};
use crate::error::SealError;
use crate::id::DataKeyId;
use crate::secret::{Cipher, NONCE, NoRandomness, TAG, random};

/// The first byte of a stream.
pub(crate) const FORMAT: u8 = 2;

/// How many bytes are encrypted at a time.
const PART: usize = 64 * 1024;

/// The bit of a part's length that marks the last part.
const LAST: u32 = 1 << 31;

/// The position in a stream, and the cipher of its parts.
struct Parts {
    /// The cipher.
    cipher: Cipher,
    /// The context.
    context: Context,
    /// The number of the next part.
    next: u64,
}

impl Parts {
    /// Begins a stream.
    fn new(key: &DataKey, salt: &Salt, context: Context) -> Self {
        Self {
            cipher: key.for_stream(salt),
            context,
            next: 0,
        }
    }

    /// Returns the nonce of the next part.
    fn nonce(&mut self, is_last: bool) -> [u8; NONCE] {
        let mut nonce = [0; NONCE];
        nonce[..8].copy_from_slice(&self.next.to_be_bytes());
        // The mark is a part of the nonce, so a stream that is cut off after a part does not end authentically.
        nonce[NONCE - 1] = u8::from(is_last);
        self.next += 1;
        nonce
    }
}

/// Encrypts what is written to it, and writes the result to another writer.
///
/// Returned by [`Keyring::seal_stream`](crate::Keyring::seal_stream). It buffers at most 64 KiB. After a failed write,
/// every further write fails.
///
/// ```
/// # use lariat::seal::{Context, Keyring, LocalKeys};
/// use std::io::{Read, Write};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let keyring = Keyring::create(&LocalKeys::from_bytes(&(0..32).collect::<Vec<u8>>())?).await?;
/// let context = Context::new("a file");
/// let mut writer = keyring.seal_stream(&context, Vec::new())?;
/// writer.write_all(b"the contents of the file")?;
/// let file: Vec<u8> = writer.finish()?;
///
/// let mut text = String::new();
/// keyring.open_stream(&context, &file[..])?.read_to_string(&mut text)?;
/// assert_eq!(text, "the contents of the file");
/// # Ok(()) }
/// ```
#[must_use = "what is not finished does not open"]
pub struct SealedWriter<W> {
    /// Receives the encrypted stream.
    to: W,
    /// The position and the cipher.
    parts: Parts,
    /// Plain text that is not encrypted yet, at most one part.
    part: Zeroizing<Vec<u8>>,
    /// The beginning of the stream, until it is written.
    head: Option<Vec<u8>>,
    /// Whether a part was written incompletely, so that the stream cannot continue.
    failed: bool,
}

impl<W: Write> SealedWriter<W> {
    /// Reads the beginning of a stream.
    pub(crate) fn new(key: &DataKey, context: Context, to: W) -> Result<Self, SealError> {
        let salt: Salt = random().map_err(|NoRandomness| SealError::NoRandomness)?;
        Ok(Self {
            to,
            parts: Parts::new(key, &salt, context),
            part: Zeroizing::new(Vec::with_capacity(PART + TAG)),
            head: Some([&[FORMAT], &key.id.0[..], &salt].concat()),
            failed: false,
        })
    }

    /// Writes the last part and returns the underlying writer.
    ///
    /// # Errors
    ///
    /// The error of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_part(true)?;
        self.to.flush()?;
        Ok(self.to)
    }

    /// Fails if an earlier write has failed.
    fn check(&self) -> io::Result<()> {
        if self.failed {
            Err(io::Error::other("an earlier write to the stream failed"))
        } else {
            Ok(())
        }
    }

    /// Encrypts and writes the buffered part.
    fn write_part(&mut self, is_last: bool) -> io::Result<()> {
        self.check()?;
        // Reset when all is written. After half a part nothing can follow: the same plain text under the next number
        // could not be opened.
        self.failed = true;
        if let Some(head) = self.head.take() {
            self.to.write_all(&head)?;
        }
        let nonce = self.parts.nonce(is_last);
        let (cipher, context) = (&self.parts.cipher, self.parts.context);
        let tag = cipher
            .seal(nonce, context, &mut self.part)
            .ok_or_else(|| io::Error::other("a part is not encrypted"))?;
        self.part.extend_from_slice(tag.as_ref());
        let last = if is_last { LAST } else { 0 };
        let length = u32::try_from(self.part.len()).map_err(io::Error::other)? | last;
        self.to.write_all(&length.to_le_bytes())?;
        self.to.write_all(&self.part)?;
        self.part.clear();
        self.failed = false;
        Ok(())
    }
}

impl<W: Write> Write for SealedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        if self.part.len() == PART && !bytes.is_empty() {
            self.write_part(false)?;
        }
        let fits = bytes.len().min(PART - self.part.len());
        self.part.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    /// Flushes the parts that are encrypted already.
    ///
    /// A part is encrypted when it is full or when the stream is finished.
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<W> fmt::Debug for SealedWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedWriter")
            .field("parts", &self.parts.next)
            .finish_non_exhaustive()
    }
}

/// Reads a sealed stream and decrypts it.
///
/// Returned by [`Keyring::open_stream`](crate::Keyring::open_stream). It reports the end only after the last part was
/// authenticated and nothing follows it. After an error every read fails.
pub struct OpenedReader<R> {
    /// The sealed stream.
    from: R,
    /// The position and the cipher.
    parts: Parts,
    /// The current part, decrypted.
    part: Zeroizing<Vec<u8>>,
    /// How many bytes of the part have been returned.
    read: usize,
    /// Whether the stream continues after the part.
    state: ReadState,
}

/// The state of a reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadState {
    /// More parts follow.
    More,
    /// The stream has ended.
    Ended,
    /// The stream is damaged.
    Damaged,
}

impl<R: Read> OpenedReader<R> {
    pub(crate) fn new(
        context: Context,
        mut from: R,
        key: impl FnOnce(DataKeyId) -> Result<Arc<DataKey>, SealError>,
    ) -> Result<Self, SealError> {
        let cut_off = |_| SealError::Malformed("its beginning cannot be read");
        let mut head = [0; 1 + 4 + 12];
        from.read_exact(&mut head).map_err(cut_off)?;
        let [format, id @ .., _, _, _, _, _, _, _, _, _, _, _, _] = head;
        if format != FORMAT {
            return Err(SealError::UnknownFormat(format));
        }
        let mut salt = Salt::default();
        salt.copy_from_slice(&head[5..]);
        let key = key(DataKeyId(id))?;
        Ok(Self {
            from,
            parts: Parts::new(&key, &salt, context),
            part: Zeroizing::new(Vec::with_capacity(PART + TAG)),
            read: 0,
            state: ReadState::More,
        })
    }

    /// Reads and decrypts the next part.
    fn next_part(&mut self) -> io::Result<ReadState> {
        self.part.clear();
        self.read = 0;
        let mut length = [0; 4];
        self.from.read_exact(&mut length).map_err(cut_off)?;
        let length = u32::from_le_bytes(length);
        let (is_last, length) = (length & LAST != 0, (length & !LAST) as usize);
        if !(TAG..=PART + TAG).contains(&length) {
            return Err(damaged(SealError::Malformed("the length of a part")));
        }
        self.part.resize(length, 0);
        self.from.read_exact(&mut self.part).map_err(cut_off)?;
        let nonce = self.parts.nonce(is_last);
        let (cipher, context) = (&self.parts.cipher, self.parts.context);
        let opened = cipher.open(nonce, context, &mut self.part);
        let length = opened.map_err(|_| damaged(SealError::Rejected))?.len();
        self.part.truncate(length);
        if !is_last {
            return Ok(ReadState::More);
        }
        // Nothing may follow the last part: data that was appended would go unnoticed.
        match io::copy(&mut self.from.by_ref().take(1), &mut io::sink())? {
            0 => Ok(ReadState::Ended),
            _ => Err(damaged(SealError::Malformed("more data follows it"))),
        }
    }
}

impl<R: Read> Read for OpenedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.read == self.part.len() && !into.is_empty() {
            match self.state {
                ReadState::Ended => return Ok(0),
                ReadState::Damaged => return Err(damaged(SealError::Rejected)),
                ReadState::More => {}
            }
            // Reset when the next part is authenticated. If reading panics or fails, later reads must fail too.
            self.state = ReadState::Damaged;
            let next = self.next_part();
            // The buffer may contain plain text that failed the authentication.
            if next.is_err() {
                self.part.clear();
            }
            self.state = next?;
        }
        let rest = &self.part[self.read..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

/// Wraps an error for [`Read`].
fn damaged(error: SealError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Reports an unexpected end as damage.
fn cut_off(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(SealError::Malformed("it is cut off")),
        _ => error,
    }
}

impl<R> fmt::Debug for OpenedReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedReader")
            .field("parts", &self.parts.next)
            .finish_non_exhaustive()
    }
}
