//! Taking in what a watch says, line by line.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{ObjectKey, RawObject, ResourceVersion};
use lariat_flight::{LineType, Reflected};
use tokio::time::Instant;

use super::error::ReflectorError;
use super::event::{LineForm, WatchEvent};

use super::loading::Loading;
use super::reflector::{Ended, Reflector};
use super::stream::WatchStream;
use crate::store::Delta;

/// How far a watch has come.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    pub(super) version: ResourceVersion,
    /// How long the watch was asked to last.
    timeout: Duration,
    /// Whether it has sent any event.
    pub(super) has_events: bool,
    /// How its lines are written.
    form: LineForm,
    /// What there is, until all of it has been sent.
    pub(super) loading: Option<Loading>,
    /// When something new was sent last while loading.
    pub(super) news: Option<Instant>,
    /// Whether the watch was given up because the content filter has changed.
    pub(super) is_refiltered: bool,
}

impl Reflector {
    /// Takes in the whole lines a watch has delivered.
    pub(super) fn take_in(
        &mut self,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        self.progress.heard();
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
        self.publisher.apply(deltas, self.intake.content());
        if let Some(loading) = &mut cursor.loading {
            self.show(loading, None);
        } else if cursor.has_events {
            self.reached = cursor.version.clone();
            self.progress.reached(&cursor.version);
        }
        outcome
    }

    /// Takes in a line. One that is not understood is reported: what it would have said is lost, so only a list makes
    /// the store right again.
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
        if let Err(ReflectorError::Malformed { .. }) = outcome
            && let Some(event) = WatchEvent::unusual(line)
        {
            outcome = self.event(event, stream, cursor, deltas);
        }
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
                    // It is there, so its last readable state is better than none.
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

    /// Notes that there is an object of a key: it left the selection and is back, or was made anew. From then on that it
    /// is there shows no other history.
    fn is_back(&mut self, key: &ObjectKey) {
        self.last_ended.take_if(|ended| ended.key() == key);
    }

    /// Takes in a bookmark: the version up to which the watch is complete.
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
        // While contents are compared because of a failure, an earlier version is no news.
        let went_back = self.policy.is_verified() && self.went_back(version);
        if went_back || version.compare(&cursor.version) == Some(Ordering::Less) {
            self.reading.server.restored();
            return Err(ReflectorError::WentBack);
        }
        // The marker says nothing of bookmarks later on.
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

    /// Returns the cursor of a watch that goes on from a version.
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
