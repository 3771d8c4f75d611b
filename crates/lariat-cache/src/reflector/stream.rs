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

/// How long bytes of a long initial list are waited for once some have come, unless there are as many.
const GATHER: Duration = Duration::from_millis(1);
const LOAD: usize = 64 * 1024;

/// The bytes of a watch as lines, with an eye on how long nothing comes.
pub(super) struct WatchStream {
    body: SourceBody,
    lines: Lines,
    /// How many bytes have come.
    received: usize,
    /// How long nothing may come before the watch counts as dead.
    patience: Duration,
    /// The end, which is told once the lines before it were read.
    end: Option<End>,
}

/// How a watch ended.
pub(super) type End = Result<(), ReflectorError>;

impl WatchStream {
    /// Reads a watch on which nothing may come for so long.
    pub(super) fn new(body: SourceBody, patience: Duration) -> Self {
        Self {
            body,
            lines: Lines::default(),
            received: 0,
            patience,
            end: None,
        }
    }

    /// Waits for bytes and takes in what has come by then, or tells how the watch ended.
    ///
    /// Dropping the future loses nothing.
    pub(super) async fn read(&mut self) -> Option<End> {
        self.read_within(None).await
    }

    /// The same for an initial list, with less patience than usual.
    ///
    /// Of a long list, what comes within a millisecond is taken in together.
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
            // Each event comes by itself, and to be woken for each costs more than to take it in.
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

    /// Changes how long nothing may come.
    pub(super) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }
}
