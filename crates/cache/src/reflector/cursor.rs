//! The cursor of a watch: applies its lines and moves to their versions.

use std::cmp::Ordering;

use lariat_core::{RawObject, ResourceVersion};
use tokio::time::Instant;

use super::error::ReflectorError;
use super::last_event::LastEvent;
use super::stream::{WatchEvent, WatchStream};

use super::position::Cursor;
use super::reflector::Reflector;
use super::standstill::BookmarkSign;
use crate::store::Delta;

impl Reflector {
    /// Applies the complete lines that a watch has delivered, as one batch.
    pub(super) fn take_in(
        &mut self,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        self.progress.received_something();
        self.progress.received(stream.newly_received());
        let (lines, standing) = (cursor.lines, cursor.standing);
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
        let (lines, standing) = (cursor.lines - lines, cursor.standing - standing);
        if lines > 0 && lines == standing {
            stream.heard_nothing_new();
        } else {
            self.silence_limit.received();
        }
        // Also after an error: the lines before the malformed one are valid, and their events must not be lost.
        self.apply(deltas);
        // During an initial list the store is incomplete, so there is no version yet that a watch could continue from.
        if let Some(loading) = &mut cursor.loading {
            self.publish_read(loading, None);
        } else if cursor.has_events {
            self.reached = cursor.version.clone();
            self.progress.reached(&cursor.version);
            self.reading.server.reached(&cursor.version);
        }
        outcome
    }

    /// Applies events, and remembers the last one.
    fn apply(&mut self, deltas: Vec<Delta>) {
        if let Some(last) = deltas.last() {
            self.last_event = LastEvent::of(last);
        }
        self.publisher.apply(deltas, self.intake.content());
    }

    /// Applies a line.
    ///
    /// A line that cannot be parsed is an error: its change is lost, so only a new list can correct the store.
    fn line(
        &mut self,
        line: &[u8],
        stream: &mut WatchStream,
        cursor: &mut Cursor,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        let mut outcome = match cursor.form.read(line) {
            Ok(event) => self.event(event, stream, cursor, deltas),
            Err(detail) => Err(ReflectorError::malformed("watch", &detail)),
        };
        // The usual form takes everything up to the last brace as the object. For a line with more members that is
        // wrong, so a parser decides.
        if let Err(ReflectorError::Malformed { .. }) = outcome
            && let Some(event) = WatchEvent::unusual(line)
        {
            outcome = self.event(event, stream, cursor, deltas);
        }
        cursor.lines += u64::from(outcome.is_ok());
        if let Err(ReflectorError::Malformed { detail, .. }) = &outcome {
            self.progress.unreadable(detail);
        }
        outcome
    }

    fn event(
        &mut self,
        event: WatchEvent<'_>,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        let is_added = matches!(event, WatchEvent::Added(_));
        let is_error = matches!(event, WatchEvent::Error(_));
        if let Some(last) = cursor.repeats.clone().filter(|_| !is_error) {
            self.check_repeated(&last, &event)?;
            (cursor.repeats, cursor.has_repeated) = (None, true);
            cursor.standing += 1;
            return Ok(());
        }
        match event {
            // The initial objects of a watch list, after the deletions that were reported between them.
            WatchEvent::Added(json) if cursor.loading.is_some() => {
                cursor.last_new = Some(Instant::now());
                if !deltas.is_empty() {
                    self.apply(std::mem::take(deltas));
                }
                return self.load_from(cursor, json);
            }
            // A change of an object during the initial list: its newer state counts as listed. The earlier one is
            // published first, since the store may have the newer one already, by the answer to a write.
            WatchEvent::Modified(json) if cursor.loading.is_some() => {
                self.apply(std::mem::take(deltas));
                if let Some(loading) = &mut cursor.loading {
                    self.publish_read(loading, None);
                }
                return self.load_from(cursor, json);
            }
            WatchEvent::Added(json) | WatchEvent::Modified(json) => {
                match self.intake.watched(json, self.publisher.store()) {
                    Ok(object) => {
                        let event = if is_added { "ADDED" } else { "MODIFIED" };
                        self.log_received(event, Some(object.key()), object.version());
                        self.change(cursor, Delta::Present(object), deltas)?;
                    }
                    // The object exists and its key is known: its last readable state stays, which is better than none.
                    // A new list could not read it either.
                    Err(error) if RawObject::key_of(json).is_some() => {
                        cursor.has_events = true;
                        self.progress.unreadable(&error);
                    }
                    Err(error) => return Err(ReflectorError::malformed("watch", &error)),
                }
            }
            // A deletion that cannot be read would leave the object in the cache for ever, so it leads to a new list.
            WatchEvent::Deleted(json) => {
                let read = self.intake.watched(json, self.publisher.store());
                let last = read.map_err(|error| ReflectorError::malformed("watch", &error))?;
                self.log_received("DELETED", Some(last.key()), last.version());
                // The objects before the deletion come first, or the deleted one would be added after it.
                if let Some(loading) = &mut cursor.loading {
                    self.publish_read(loading, None);
                }
                self.change(cursor, Delta::Deleted(last), deltas)?;
            }
            WatchEvent::Bookmark {
                version,
                ends_initial,
            } => {
                self.log_received("BOOKMARK", None, &version);
                // Changes before the marker belong to the initial list, and those before any bookmark to its version.
                self.apply(std::mem::take(deltas));
                self.bookmark(&version, ends_initial, stream, cursor)?;
                if ends_initial && let Some(loading) = cursor.loading.take() {
                    self.end_loading(loading, &version);
                }
            }
            WatchEvent::Error(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes a change into the batch.
    fn change(
        &self,
        cursor: &mut Cursor,
        delta: Delta,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), ReflectorError> {
        if !self.is_before_list(cursor, &delta)? {
            let (Delta::Present(object) | Delta::Deleted(object)) = &delta;
            cursor.move_to(object.version());
            deltas.push(delta);
        }
        Ok(())
    }

    /// Applies a bookmark: the watch has reported all changes up to its version.
    fn bookmark(
        &mut self,
        version: &ResourceVersion,
        ends_initial: bool,
        stream: &mut WatchStream,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        // During a comparing list after a failure, an earlier version is expected.
        let went_back = self.policy.is_verified() && self.went_back(version);
        // Versions never decrease in one history, so the server was restored from a backup.
        if went_back || version.compare(&cursor.version) == Some(Ordering::Less) {
            return Err(self.other_history());
        }
        cursor.check_unlisted()?;
        // A server may send the end marker of a watch list and no periodic bookmarks.
        if !ends_initial {
            if self.has_passed_own_write(version) {
                return Err(ReflectorError::OtherHistory);
            }
            self.judge(version, cursor)?;
            self.silence_limit.bookmarked();
            let store = self.publisher.store();
            // During an initial list there is nothing to list again.
            let hides = store.must_list(self.reading.namespace.as_deref());
            cursor.is_reread |= hides && cursor.loading.is_none();
            stream.set_silence_limit(self.silence_limit.for_timeout(cursor.timeout));
        }
        cursor.move_to(version);
        Ok(())
    }

    /// Judges whether a bookmark shows that the server goes on watching.
    fn judge(
        &mut self,
        version: &ResourceVersion,
        cursor: &mut Cursor,
    ) -> Result<(), ReflectorError> {
        let written = self.newest_own();
        let server_moved = self.reading.server.is_beyond(version);
        let sign = self
            .standstill
            .judge(version, &cursor.version, written, server_moved);
        match sign {
            BookmarkSign::Behind { written, since } => {
                let version = version.clone();
                return Err(ReflectorError::Stale {
                    version,
                    written,
                    since,
                });
            }
            BookmarkSign::Stands => cursor.standing += 1,
            // A server that follows etcd too slowly moves, and is behind all the same.
            BookmarkSign::Moves if self.standstill.is_behind() => {}
            BookmarkSign::Moves if self.is_stale && version != &cursor.version => {
                self.is_stale = false;
                self.progress.recovered();
            }
            BookmarkSign::Moves => {}
        }
        Ok(())
    }

    fn load_from(&mut self, cursor: &mut Cursor, json: &[u8]) -> Result<(), ReflectorError> {
        if let Some(loading) = &mut cursor.loading {
            cursor.has_events = true;
            self.load(loading, json.into(), "watch")?;
        }
        Ok(())
    }
}
