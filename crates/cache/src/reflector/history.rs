//! Watching on after a failure, if the API server still has the history from which the store was read.
//!
//! An etcd that is restored from a backup goes back to an earlier version and continues from there, so it gives
//! versions that were used before to other states. The API server does not report this. A watch from a version that it
//! has not reached yet is opened and stays silent. A watch from a version that it has passed again omits the changes
//! below it.
//!
//! So after a failure, or a watch that was closed before its time, a watch begins right before its last event, which the
//! server has to repeat at once: the same version of the same object, with the same content. Without an event since the
//! list it begins right before the newest listed object. That needs no further request. The server may have forgotten
//! an event of more than five minutes before the failure, and the newest object. If it answers that their version has
//! expired, or there is no object, one reflector asks for the server's version, for all of the factory, and it must not
//! be below a version that was reached. An own write that a watch passes without reporting it is of another history too.
//!
//! A watch that begins right before the newest listed object also brings the events of objects that were deleted before
//! the list. The deletion has to be among them. Otherwise this kind alone is listed, once the watch has passed the
//! version of the list, as that is no proof of a restore.
//!
//! In another history, all reflectors of the factory read everything again and compare contents. Versions of lists and
//! bookmarks show it as well, if they are below a version that was reached (`loading`, `cursor`).
//!
//! Not noticed is a restore before which a kind had no event for five minutes, if the server has forgotten the kind's
//! newest object, no other kind of the factory notices the restore, and the server has passed the versions of all kinds
//! again before it is reached. kube-apiserver has forgotten each version from before its own start. Changes below those
//! versions stay unseen until the objects change again, or the kind is listed for another reason. The same holds for the
//! return of an object that was deleted before the list, if no event came since, and the newest object is the same.

use std::cmp::Ordering;
use std::time::Duration;

use lariat_core::{RawObject, ResourceVersion};
use tokio::time::{self, Instant};

use super::end::{End, NextStep, Stage};
use super::error::ReflectorError;
use super::last_event::LastEvent;
use super::page::Page;
use super::position::Cursor;
use super::reflector::{Failure, Reflector, ReflectorStep};
use super::source::SourceRequest;
use super::stream::WatchEvent;
use crate::store::{CachedObject, Delta};

/// How long a reflector waits while another one asks for the server's version.
const TURN: Duration = Duration::from_secs(10);

impl Reflector {
    /// Watches on after a failure, from a version or from right before the last event.
    pub(super) async fn resume(
        &mut self,
        since: ResourceVersion,
    ) -> Result<ReflectorStep, Failure> {
        let (last, written) = (self.last_event.clone(), self.newest_own());
        if last.is_none() || written.is_some() {
            let reached = written.filter(|it| is_less(&since, it));
            let reached = reached.unwrap_or_else(|| since.clone());
            self.log_began(Stage::Check, Some(&since));
            if let Err(error) = self.check_reached(&reached).await {
                let decision = self.decide(Stage::Check, error.end());
                return Err(Failure::of(error, decision, since));
            }
            self.log_ended(Stage::Check, End::Complete, NextStep::Watch, Duration::ZERO);
        }
        let Some(last) = last else {
            self.policy.verified();
            return Ok(ReflectorStep::Watch { since });
        };
        let may_be_forgotten = !last.is_expected();
        match self.watch(since.clone(), Some(last)).await {
            // No sign of a restore, so the server's version decides.
            Err(failure)
                if may_be_forgotten
                    && failure.error.end() == End::Expired
                    && !self.policy.is_verified() =>
            {
                (self.last_event, self.is_forgotten) = (None, true);
                self.policy.forgotten();
                Ok(ReflectorStep::Watch { since })
            }
            outcome => outcome,
        }
    }

    /// Remembers the event to which the watch after a failure goes back.
    pub(super) fn remember_newest(&mut self) {
        let last = self.last_event.take().map(LastEvent::at_failure);
        self.last_event = last.or_else(|| {
            let (store, namespace) = (self.publisher.store(), self.reading.namespace.as_deref());
            let newest = LastEvent::newest(store, namespace, &self.reached);
            newest.filter(|_| !self.is_forgotten)
        });
    }

    /// Checks an event that must be the last one, repeated.
    pub(super) fn check_repeated(
        &mut self,
        last: &LastEvent,
        event: &WatchEvent<'_>,
    ) -> Result<(), ReflectorError> {
        let Some(json) = event.object() else {
            return Err(self.other_history());
        };
        let is_deletion = matches!(event, WatchEvent::Deleted(_));
        let read = self.intake.watched(json, self.publisher.store());
        let object = read.map_err(|error| ReflectorError::malformed("watch", &error))?;
        if !last.is(&object, is_deletion) {
            return Err(self.other_history());
        }
        // A reason to compare contents, and no proof: a server of another release may encode the state differently.
        if !is_deletion && self.has_other_content(&object) {
            return Err(ReflectorError::OtherHistory);
        }
        self.policy.verified();
        Ok(())
    }

    /// Returns whether an event is from before the version of the watch, so that the store has its effect already.
    ///
    /// The list had no newer object than the repeated event. So between that and the version of the watch only events
    /// of objects can follow that were deleted before the list, or that this process has written since. Those of the
    /// former are kept until a deletion follows.
    ///
    /// # Errors
    ///
    /// [`ReflectorError::OtherHistory`] if the event is about a listed object, or none is from before the version any
    /// more and an object was not deleted.
    pub(super) fn is_before_list(
        &self,
        cursor: &mut Cursor,
        delta: &Delta,
    ) -> Result<bool, ReflectorError> {
        let (Delta::Present(object) | Delta::Deleted(object)) = delta;
        if !cursor.has_repeated || is_less(&cursor.version, object.version()) {
            cursor.check_unlisted()?;
            return Ok(false);
        }
        let is_listed = |known: &CachedObject| !is_less(&cursor.version, known.version());
        match self.publisher.store().get(object.key()) {
            // A reason to list the kind, and no proof of a restore: the cached state may be an earlier one that was
            // readable.
            Some(known) if is_listed(&known) => return Err(ReflectorError::OtherHistory),
            // An own write has replaced the listed state, and the watch has to report that too.
            Some(known) if known.uid() == object.uid() => return Ok(true),
            _ => {}
        }
        match delta {
            Delta::Present(object) => cursor.unlisted.insert(object.key().clone()),
            Delta::Deleted(object) => cursor.unlisted.remove(object.key()),
        };
        Ok(true)
    }

    /// Reports to the other reflectors that the server has another history; returns the error of this one.
    pub(super) fn other_history(&self) -> ReflectorError {
        self.reading.server.restored();
        ReflectorError::OtherHistory
    }

    /// Returns whether a watch has passed an own write, and has not reported it.
    ///
    /// All events up to the version are in the store by then.
    pub(super) fn has_passed_own_write(&self, version: &ResourceVersion) -> bool {
        self.own_writes().any(|written| !is_less(version, &written))
    }

    /// Returns the version of the newest own write that no watch has reported yet.
    pub(super) fn newest_own(&self) -> Option<ResourceVersion> {
        self.own_writes()
            .reduce(|one, other| if is_less(&one, &other) { other } else { one })
    }

    /// Returns the versions of the cached states that this process wrote, and that no watch has reported yet.
    fn own_writes(&self) -> impl Iterator<Item = ResourceVersion> {
        let (store, namespace) = (self.publisher.store(), self.reading.namespace.as_deref());
        let own = store
            .unconfirmed()
            .into_iter()
            .filter(move |(key, version)| {
                namespace.is_none_or(|it| key.namespace() == Some(it))
                    && store
                        .get(key)
                        .is_some_and(|known| known.version() == version)
            });
        own.map(|(_, version)| version)
    }

    fn has_other_content(&self, object: &RawObject) -> bool {
        let (store, content) = (self.publisher.store(), self.intake.content());
        store.get(object.key()).is_some_and(|known| {
            (known.uid(), known.version()) == (object.uid(), object.version())
                && store.is_comparable(&known, content)
                && !known.has_same_content(object.json())
        })
    }

    /// Checks that the server is not before a version that was read from it.
    async fn check_reached(&self, reached: &ResourceVersion) -> Result<(), ReflectorError> {
        // Versions that are not numbers cannot be compared as earlier and later, so there is nothing to check.
        if reached.number().is_err() {
            return Ok(());
        }
        let starts = self.reading.server.starts.clone();
        if is_less(&starts.admit(self.server_version(reached)).await?, reached) {
            return Err(self.other_history());
        }
        Ok(())
    }

    /// Returns the server's version: at least the reached one, as another reflector was told, or as it is now.
    async fn server_version(
        &self,
        reached: &ResourceVersion,
    ) -> Result<ResourceVersion, ReflectorError> {
        // Not for ever: an answer that does not come must not delay all kinds.
        let turn = time::timeout(TURN, self.reading.server.asked.lock()).await;
        let mut turn = turn.ok();
        // It counts if it was asked for since this reflector had its last failure.
        if let Some(Some((at, version))) = turn.as_deref()
            && *at >= self.last_failed
            && !is_less(version, reached)
        {
            return Ok(version.clone());
        }
        let at = Instant::now();
        let request = SourceRequest {
            gzip: false,
            ..self.request(self.queries.one(), false)
        };
        let json = self.read(self.open(request).await?).await?;
        let version = Page::parse(&json)?.of_kind(self.progress.gvk())?.version;
        if let Some(asked) = &mut turn {
            **asked = Some((at, version.clone()));
        }
        Ok(version)
    }
}

fn is_less(one: &ResourceVersion, other: &ResourceVersion) -> bool {
    one.compare(other) == Some(Ordering::Less)
}
