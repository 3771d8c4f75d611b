//! Applying the lines of a watch.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{ObjectKey, RawObject, ResourceVersion};
use lariat_flight::{LineType, Reflected};
use tokio::time::Instant;

use super::error::ReflectorError;
use super::stream::{LineForm, WatchEvent, WatchStream};

use super::loading::Loading;
use super::reflector::{Ended, Reflector};
use crate::store::Delta;

/// The position of a watch.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    pub(super) version: ResourceVersion,
    /// The requested duration of the watch.
    timeout: Duration,
    /// Whether any event has been received.
    pub(super) has_events: bool,
    /// The number of lines that were understood.
    pub(super) lines: u64,
    /// The form of its lines.
    form: LineForm,
    /// The initial list, until all of it has been received.
    pub(super) loading: Option<Loading>,
    /// When the last new object of the initial list was received.
    pub(super) news: Option<Instant>,
    /// Whether the watch was abandoned because everything is to be read again.
    pub(super) is_reread: bool,
}

impl Reflector {
    /// Applies the complete lines that a watch has delivered, as one batch.
    pub(super) fn take_in(
        &mut self,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        self.progress.heard();
        self.progress.received(stream.newly_received());
        self.patience.heard();
        let mut deltas: Vec<Delta> = Vec::new();
        let mut outcome = Ok(());
        while outcome.is_ok()
            && let Some(line) = stream.next_line()
        {
            if line.trim_ascii().is_empty() {
                continue;
            }
            outcome = self.line(&line, stream, cursor, &mut deltas);
        }
        // Also after an error: the lines before the bad one are valid.
        self.publisher.apply(deltas, self.intake.content());
        if let Some(loading) = &mut cursor.loading {
            self.show(loading, None);
        } else if cursor.has_events {
            self.reached = cursor.version.clone();
            self.progress.reached(&cursor.version);
        }
        outcome
    }

    /// Applies a line.
    ///
    /// A line that is not understood is an error: its change is lost, so only a new list can correct the store.
    fn line(
        &mut self,
        line: &[u8],
        stream: &mut WatchStream,
        cursor: &mut Cursor,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        let mut outcome = match cursor.form.read(line) {
            Ok(event) => self.event(event, stream, cursor, deltas),
            Err(detail) => Err(malformed(detail)),
        };
        // The usual form takes everything up to the last brace for the object; a parser decides about a line that has
        // more.
        if let Err(ReflectorError::Malformed { .. }) = outcome
            && let Some(event) = WatchEvent::unusual(line)
        {
            outcome = self.event(event, stream, cursor, deltas);
        }
        cursor.lines += u64::from(outcome.is_ok());
        if let Err(ReflectorError::Malformed { detail, .. }) = &outcome {
            self.progress.unreadable(detail);
            self.record(|_| Reflected::Unreadable {});
        }
        outcome
    }

    fn record_line(&self, line: LineType, object: &RawObject) {
        if let Some(flight) = &self.reading.flight {
            flight.line(line, object);
        }
    }

    fn event(
        &mut self,
        event: WatchEvent<'_>,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        let line_type = event.line_type();
        match event {
            WatchEvent::Added(json) if cursor.loading.is_some() => {
                cursor.news = Some(Instant::now());
                return self.load_from(cursor, json);
            }
            WatchEvent::Modified(json) if cursor.loading.is_some() => {
                return self.load_from(cursor, json);
            }
            WatchEvent::Added(json) | WatchEvent::Modified(json) => {
                match self.intake.watched(json, self.publisher.store()) {
                    Ok(object) => {
                        self.record_line(line_type, &object);
                        cursor.move_to(object.version());
                        self.is_back(object.key());
                        deltas.push(Delta::Present(object));
                    }
                    // The object exists, so its last readable state is better than none.
                    Err(error) => match RawObject::key_of(json) {
                        Some(key) => {
                            self.is_back(&key);
                            cursor.has_events = true;
                            self.progress.unreadable(&error);
                        }
                        None => return Err(malformed(error.to_string())),
                    },
                }
            }
            WatchEvent::Deleted(json) => {
                let read = self.intake.watched(json, self.publisher.store());
                let last = read.map_err(|error| malformed(error.to_string()))?;
                self.record_line(line_type, &last);
                if let Some(loading) = &mut cursor.loading {
                    self.show(loading, None);
                }
                cursor.move_to(last.version());
                self.last_ended = Some(Ended::of(&last));
                deltas.push(Delta::Gone(last));
            }
            WatchEvent::Bookmark {
                version,
                ends_initial,
            } => {
                self.bookmark(&version, ends_initial, stream, cursor)?;
                if ends_initial && let Some(loading) = cursor.loading.take() {
                    self.publisher
                        .apply(std::mem::take(deltas), self.intake.content());
                    self.end_loading(loading, &version);
                }
            }
            WatchEvent::Error(error) => return Err(error),
        }
        Ok(())
    }

    /// Notes that an object of a key exists: selected again, or created again.
    ///
    /// From then on, its existence does not indicate another history.
    fn is_back(&mut self, key: &ObjectKey) {
        self.last_ended.take_if(|ended| ended.key() == key);
    }

    /// Applies a bookmark: the watch is complete up to its version.
    fn bookmark(
        &mut self,
        version: &ResourceVersion,
        ends_initial: bool,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        self.record(|_| Reflected::Bookmark {
            version: version.into(),
            ends_initial,
        });
        // While contents are compared after a failure, an earlier version is expected.
        let went_back = self.policy.is_verified() && self.went_back(version);
        if went_back || version.compare(&cursor.version) == Some(Ordering::Less) {
            self.reading.server.restored();
            return Err(ReflectorError::WentBack);
        }
        // The end marker says nothing about later bookmarks.
        if !ends_initial {
            self.patience.bookmarked();
            let store = self.publisher.store();
            store.watch_progressed(self.reading.namespace.as_deref());
            stream.set_patience(self.patience.with(cursor.timeout));
        }
        cursor.move_to(version);
        Ok(())
    }

    fn load_from(&mut self, cursor: &mut Cursor, json: &[u8]) -> Result<(), ReflectorError> {
        if let Some(loading) = &mut cursor.loading {
            cursor.has_events = true;
            self.load(loading, json.into())?;
        }
        Ok(())
    }
}

fn malformed(detail: String) -> ReflectorError {
    let verb = "watch";
    ReflectorError::Malformed { verb, detail }
}

impl Cursor {
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            ..Self::default()
        }
    }

    /// Returns the cursor of a watch that continues from a version.
    pub(super) fn at(version: ResourceVersion, timeout: Duration) -> Self {
        Self {
            version,
            ..Self::new(timeout)
        }
    }

    fn move_to(&mut self, version: &ResourceVersion) {
        self.has_events = true;
        if !version.is_empty() {
            self.version = version.clone();
        }
    }
}
