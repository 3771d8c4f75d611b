//! An open watch.

use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::time;

use super::error::ReflectorError;
use super::lines::Lines;
use super::source::{SourceBody, SourceError};

/// How many bytes are taken in before they are worked on, if they are there already.
const BATCH: usize = 256 * 1024;

/// How long past its own timeout a watch may be silent.
const SLACK: Duration = Duration::from_secs(10);

/// How long a watch that has shown bookmarks may be silent: the API server sends one a minute.
const BOOKMARK_SILENCE: Duration = Duration::from_secs(90);

/// The bytes of a watch as lines, with an eye on how long nothing comes.
pub(super) struct WatchStream {
    body: SourceBody,
    lines: Lines,
    /// How long nothing may come before the watch counts as dead.
    patience: Duration,
    /// The end, which is told once the lines before it were read.
    end: Option<End>,
}

/// How a watch ended.
pub(super) type End = Result<(), ReflectorError>;

impl WatchStream {
    /// Reads a watch; `bookmarks` says whether its server is known to send them.
    pub(super) fn new(body: SourceBody, timeout: Duration, bookmarks: bool) -> Self {
        let mut stream = Self {
            body,
            lines: Lines::default(),
            patience: timeout + SLACK,
            end: None,
        };
        if bookmarks {
            stream.bookmarked();
        }
        stream
    }

    /// Waits for bytes and takes in what has come by then, or tells how the watch ended.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn read(&mut self) -> Option<End> {
        self.read_within(None).await
    }

    /// The same, with less patience than usual.
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
            Some(Ok(frame)) => self.lines.push(frame.data_ref().map_or(&[], |data| data)),
            Some(Err(source)) => {
                let verb = "watch";
                self.end = Some(Err(ReflectorError::Cut { verb, source }));
            }
        }
    }

    pub(super) fn next_line(&mut self) -> Option<Bytes> {
        self.lines.next()
    }

    /// Notes that the server sends bookmarks, so that silence means something.
    pub(super) fn bookmarked(&mut self) {
        self.patience = self.patience.min(BOOKMARK_SILENCE);
    }
}
