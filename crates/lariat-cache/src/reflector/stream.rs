//! An open watch: its bytes as lines, and how long it may be silent.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures::FutureExt;
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time::{self, Instant};

use super::error::ReflectorError;
use super::source::{SourceBody, SourceError};

/// How many available bytes are read before they are processed.
const BATCH: usize = 256 * 1024;

/// How long bytes of a long initial list are gathered, if there are too few.
const GATHER: Duration = Duration::from_millis(1);
const LOAD: usize = 64 * 1024;

/// The bytes of a watch as lines, with a limit on silence.
pub(super) struct WatchStream {
    body: SourceBody,
    lines: Lines,
    /// The number of received bytes.
    received: usize,
    /// How long nothing may arrive before the watch counts as dead.
    patience: Duration,
    /// The end of the watch, returned after the lines before it.
    end: Option<End>,
}

/// How a watch ended.
pub(super) type End = Result<(), ReflectorError>;

impl WatchStream {
    /// Reads a watch that may be silent for at most `patience`.
    pub(super) fn new(body: SourceBody, patience: Duration) -> Self {
        Self {
            body,
            lines: Lines::default(),
            received: 0,
            patience,
            end: None,
        }
    }

    /// Waits for bytes and reads all that are available; returns the end of the watch.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn read(&mut self) -> Option<End> {
        self.read_within(None).await
    }

    /// As [`read`](Self::read), for an initial list, which may be silent for less time.
    ///
    /// The bytes of a long list that arrive within a millisecond are read together.
    pub(super) async fn read_within(&mut self, patience: Option<Duration>) -> Option<End> {
        if let Some(end) = self.end.take() {
            return Some(end);
        }
        let after = patience.unwrap_or(self.patience).min(self.patience);
        let Ok(first) = time::timeout(after, self.body.frame()).await else {
            let verb = "watch";
            return Some(Err(ReflectorError::Silent { verb, after }));
        };
        self.take_in(first);
        let is_long = self.received >= LOAD;
        if patience.is_some() && is_long && self.end.is_none() && self.lines.len() < LOAD {
            // Each event arrives separately, and waking up for each costs more than reading it.
            time::sleep(GATHER).await;
        }
        while self.end.is_none()
            && self.lines.len() < BATCH
            && let Some(next) = self.body.frame().now_or_never()
        {
            self.take_in(next);
        }
        None
    }

    fn take_in(&mut self, frame: Option<Result<Frame<Bytes>, SourceError>>) {
        match frame {
            None => self.end = Some(Ok(())),
            Some(Ok(frame)) => {
                let data = frame.data_ref().map_or(&[][..], |data| data);
                self.received += data.len();
                self.lines.push(data);
            }
            Some(Err(source)) => {
                let verb = "watch";
                self.end = Some(Err(ReflectorError::Cut { verb, source }));
            }
        }
    }

    pub(super) fn next_line(&mut self) -> Option<Bytes> {
        self.lines.next()
    }

    /// Changes how long nothing may arrive.
    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
}

/// Buffers the bytes of a stream and splits them at line feeds.
#[derive(Debug, Default)]
pub(super) struct Lines {
    buffer: BytesMut,
    /// How many bytes at the front contain no line feed.
    searched: usize,
}

impl Lines {
    /// Copies a chunk: a part of it would keep the connection's whole read buffer alive.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the number of buffered bytes.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the next complete line, without its line feed.
    ///
    /// Bytes that are not UTF-8 are replaced, as by Go's decoder and in lists: otherwise an object would be readable or
    /// not depending on whether it was listed or watched.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + at).freeze();
        self.buffer.advance(1);
        self.searched = 0;
        Some(match std::str::from_utf8(&line) {
            Ok(_) => line,
            Err(_) => String::from_utf8_lossy(&line).into_owned().into(),
        })
    }
}

/// How long past its own timeout a watch may be silent.
const SLACK: Duration = Duration::from_secs(10);

/// How long a watch may be silent at first, once bookmarks have been seen.
///
/// The API server sends one a minute, as long as etcd reports its progress.
const BOOKMARK_SILENCE: Duration = Duration::from_secs(90);

/// The longest silence of a kind without changes.
///
/// By its defaults, etcd reports its progress every ten minutes, and a watch without events since it was opened gets no
/// bookmark.
const LONGEST_SILENCE: Duration = Duration::from_secs(600);

/// Events within this time are as frequent as bookmarks should be.
const FREQUENT: Duration = Duration::from_secs(120);

/// How much silence counts as a kind without changes rather than a dead connection.
///
/// It follows from the server's bookmarks, and doubles with each silent watch, from 90 s to ten minutes. A dead
/// connection is not detected this way, but by the tests of the connection itself.
#[derive(Debug)]
pub(super) struct Patience {
    /// Whether this server has sent bookmarks, so that silence has a meaning.
    bookmarks: bool,
    silence: Duration,
    /// When a watch last received something.
    heard: Option<Instant>,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            bookmarks: false,
            silence: BOOKMARK_SILENCE,
            heard: None,
        }
    }
}

impl Patience {
    /// Returns how long a watch with the given timeout may be silent.
    pub(super) fn with(&self, timeout: Duration) -> Duration {
        let longest = timeout + SLACK;
        if self.bookmarks {
            self.silence.min(longest)
        } else {
            longest
        }
    }

    pub(super) fn bookmarked(&mut self) {
        self.bookmarks = true;
    }

    /// Notes that a watch received something.
    ///
    /// If that is rare, the allowed silence stays as it is.
    pub(super) fn heard(&mut self) {
        let now = Instant::now();
        if self.heard.is_some_and(|before| now - before <= FREQUENT) {
            self.silence = BOOKMARK_SILENCE;
        }
        self.heard = Some(now);
    }

    /// Notes that a watch was silent for the allowed time.
    pub(super) fn ran_out(&mut self) {
        self.silence = (self.silence * 2).min(LONGEST_SILENCE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        let mut lines = Lines::default();
        lines.push(b"{\"a\":\"\xc3\xa4\xff\"}\n");
        assert_eq!(lines.next().unwrap(), "{\"a\":\"ä\u{fffd}\"}");
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_arrive(
            text in "[ab\n]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let (mut lines, mut read, mut start) = (Lines::default(), Vec::new(), 0);
            for end in cuts.into_iter().chain([text.len()]) {
                lines.push(&text.as_bytes()[start..end]);
                start = end;
                while let Some(line) = lines.next() {
                    read.push(String::from_utf8(line.to_vec()).unwrap());
                }
            }
            let (whole, rest) = text.rsplit_once('\n').map_or(("", &*text), |(a, b)| (a, b));
            let expected: Vec<&str> =
                if text.contains('\n') { whole.split('\n').collect() } else { Vec::new() };
            prop_assert_eq!(read, expected);
            prop_assert_eq!(lines.len(), rest.len());
        }
    }
}
