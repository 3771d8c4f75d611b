//! Checks that the API server still has the history from which the store was read.
//!
//! An etcd that is restored from a backup goes back to an earlier version and continues from there, so it gives
//! versions that were used before to other states. The API server does not report this. A watch from a version that it
//! has not reached yet is opened and stays silent. A watch from a version that it has passed again omits the changes
//! below it.
//!
//! So after a failed connection a reflector first asks for two objects of the kind: the newest one that was read, and
//! the newest one that this process has written since. The namespaces of a selection share the answer. In the same
//! history, their uid, version and content are unchanged. In another history, all reflectors of the factory read
//! everything again and compare contents. If an object was deleted after both, the reflector asks for its name too: in
//! another history it exists, if only as an earlier object of the name.
//!
//! What this cannot detect:
//!
//! - A restore without any trace: no object of the factory's kinds was created, changed or deleted between the backup
//!   and the failure, *and* the restored server had passed the version of a kind's watch when it was reached again.
//! - A deletion that was undone, if it is not the last one that the watch has reported since the last load after a
//!   failure, if the backup has no object of the name, or if that object was deleted again.
//! - A second restore, in a kind without changes, that other kinds detect while they read everything again because of
//!   the first.
//!
//! Changes made below the watch's version then stay unseen until the objects change again, or the kind is read again
//! for another reason.

use std::cmp::Ordering;
use std::sync::Arc;

use lariat_core::{ObjectKey, RawObject, ResourceVersion};
use tokio::time::Instant;

use super::checks::{Ended, Evidence, Turn};
use super::end::{End, NextStep, Stage};
use super::error::ReflectorError;
use super::page::{Item, Page};
use super::reflector::{Failure, Reflector, ReflectorStep};
use super::source::SourceRequest;
use crate::store::CachedObject;

/// What the answers say about the API server's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum History {
    /// It is the one from which the store was read.
    Same,
    /// It is another one.
    Other,
    /// The answers do not decide it.
    Unknown,
}

/// The state of a known object on the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObservedState {
    /// It does not exist.
    Absent,
    /// It has another uid or version.
    Other,
    /// It has the same version and other content.
    Differs,
    /// It is in the known state.
    Same,
}

impl Reflector {
    /// Decides whether a watch may continue from a version.
    pub(super) async fn verify(
        &mut self,
        since: ResourceVersion,
    ) -> Result<ReflectorStep, Failure> {
        self.log_began(Stage::Check, Some(&since));
        let history = self.shared_history(&since).await;
        let kind = self.progress.gvk();
        let decision = match history {
            Ok(History::Same) => self.decide(Stage::Check, End::Complete),
            Ok(History::Other) => {
                tracing::warn!(
                    %kind, %since,
                    "the API server has another history than before, as after a restore from a backup; \
                     the kind is listed again"
                );
                self.reading.server.restored();
                self.decide(Stage::Check, End::OtherHistory)
            }
            Ok(History::Unknown) => self.decide(Stage::Check, End::UnknownHistory),
            Err(error) if error.refuses_check() => {
                tracing::debug!(%kind, %error, "the API server does not answer checks of its history");
                self.decide(Stage::Check, End::NoHistory)
            }
            Err(error) => {
                let decision = self.decide(Stage::Check, error.end());
                return Err(Failure::of(error, decision, since));
            }
        };
        Ok(match decision.next {
            NextStep::Watch => ReflectorStep::Watch { since },
            NextStep::Load | NextStep::Nothing => ReflectorStep::Load,
        })
    }

    /// Returns what another reflector of the kind has found since this one lost its watch, or asks.
    ///
    /// The namespaces of a kind are in one history, and each asks for the newest object of all of them.
    async fn shared_history(&mut self, since: &ResourceVersion) -> Result<History, ReflectorError> {
        if since.compare(&0.into()).is_none() {
            // Versions that are not numbers cannot be compared as earlier and later, so there is nothing to check.
            return Ok(History::Same);
        }
        let (checks, lost) = (self.reading.server.checks.clone(), Instant::now());
        checks.add(since, self.last_ended.as_ref());
        let starts = self.reading.server.starts.clone();
        starts
            .admit(async {
                let asking = match checks.turn(lost).await {
                    Turn::Same => return Ok(History::Same),
                    Turn::Asks(asking) => asking,
                };
                let evidence = checks.take(since, self.last_ended.as_ref());
                let history = self.history(evidence).await;
                asking.end(matches!(history, Ok(History::Same)));
                history
            })
            .await
    }

    async fn history(&mut self, evidence: Evidence) -> Result<History, ReflectorError> {
        let Evidence {
            reached: since,
            ended,
        } = evidence;
        let since = &since;
        let newest = self.newest(since);
        if newest.iter().all(Option::is_none) {
            // The store is empty, so the only evidence is the server's version, and whether an object appeared.
            let (version, is_empty) = self.ask_for_any().await?;
            return Ok(match version.compare(since) {
                // Versions only grow within a history.
                Some(Ordering::Less) => History::Other,
                // Server and store are both empty, so there is no object that a watch could miss.
                _ if is_empty => History::Same,
                // Objects exist; whether they are older than the watch's version cannot be seen from one of them.
                _ => History::Unknown,
            });
        }
        // The first `Other` decides: the remaining request could not change that.
        let mut history = History::Same;
        for object in newest.iter().flatten() {
            match self.history_of(object, since).await? {
                History::Same => {}
                other => history = other,
            }
            if history == History::Other {
                return Ok(history);
            }
        }
        // Own writes are no evidence against a deletion: they may have been made after the restore.
        let [read, _] = newest;
        let is_newest = |end: &Ended| {
            let is_newer = |newest: &Arc<CachedObject>| {
                end.version.compare(newest.version()) == Some(Ordering::Less)
            };
            !read.as_ref().is_some_and(is_newer)
        };
        // The last deletion that a watch reported, unless an object is newer.
        Ok(match ended.filter(|(end, _)| is_newest(end)) {
            Some((end, since)) if self.check_undone(&end, &since).await? => History::Other,
            _ => history,
        })
    }

    /// Returns whether an object exists although its deletion was reported.
    ///
    /// An object of its name must also have existed at the version that the watch has reached. Any object of the name
    /// counts: the restored one may be an earlier one than the one that was deleted last.
    async fn check_undone(
        &self,
        end: &Ended,
        since: &ResourceVersion,
    ) -> Result<bool, ReflectorError> {
        // The object may have been selected or created again since, so the state at the watch's version decides.
        Ok(self.check_exists(&end.key, None).await?
            && self.check_exists(&end.key, Some(since)).await?)
    }

    async fn check_exists(
        &self,
        key: &ObjectKey,
        at: Option<&ResourceVersion>,
    ) -> Result<bool, ReflectorError> {
        let json = self.ask_for(key, at).await?;
        let page = Page::parse(&json)?.of_kind(self.progress.gvk())?;
        Ok(item_of(&page, key).is_some())
    }

    /// Decides whether the API server has the history that an object is from.
    async fn history_of(
        &mut self,
        object: &CachedObject,
        since: &ResourceVersion,
    ) -> Result<History, ReflectorError> {
        // An own write may be newer than the watch's version; the server must have reached it too.
        let reached = match object.version().compare(since) {
            Some(Ordering::Greater) => object.version(),
            _ => since,
        };
        let (version, now) = self.observe(object, None).await?;
        // The server has not reached a version that was read from it before.
        if version.compare(reached) == Some(Ordering::Less) {
            return Ok(History::Other);
        }
        let observed = match now {
            // The object may have changed or been deleted since, so its state at the reached version decides.
            ObservedState::Absent | ObservedState::Other => {
                self.observe(object, Some(reached)).await?.1
            }
            seen => seen,
        };
        Ok(match observed {
            ObservedState::Same => History::Same,
            // Unknown rather than other: a server of another release may encode the same state differently.
            ObservedState::Differs => History::Unknown,
            ObservedState::Absent | ObservedState::Other => History::Other,
        })
    }

    /// Returns the newest object read up to a version, and the newest own write.
    ///
    /// The second one was written by this process after that version: such an object is in the store before the watch
    /// has reported it. It may have been written after a restore that was not detected yet. Then it is no evidence
    /// about what was read before, although its version may be one that the watch has passed.
    fn newest(&self, since: &ResourceVersion) -> [Option<Arc<CachedObject>>; 2] {
        let store = self.publisher.store();
        let (snapshot, own) = (store.snapshot(), store.unconfirmed());
        let is_later = |object: &&Arc<CachedObject>| {
            object.version().compare(since) == Some(Ordering::Greater)
                || own.get(object.key()) == Some(object.version())
        };
        let newest = |later: bool| {
            let wanted = |object: &&Arc<CachedObject>| is_later(object) == later;
            snapshot.iter().filter(wanted).reduce(newer).cloned()
        };
        [newest(false), newest(true)]
    }

    /// Asks for any object; returns the server's version and whether there is none.
    async fn ask_for_any(&self) -> Result<(ResourceVersion, bool), ReflectorError> {
        let namespace = self.reading.namespace.clone();
        let json = self.ask(namespace, self.queries.one(None, None)).await?;
        let page = Page::parse(&json)?.of_kind(self.progress.gvk())?;
        Ok((page.version, page.items.is_empty()))
    }

    /// Asks for an object in its present state, or as it was at a version.
    ///
    /// Also returns the version of the answer.
    async fn observe(
        &mut self,
        object: &CachedObject,
        at: Option<&ResourceVersion>,
    ) -> Result<(ResourceVersion, ObservedState), ReflectorError> {
        let json = self.ask_for(object.key(), at).await?;
        let page = Page::parse(&json)?.of_kind(self.progress.gvk())?;
        let found = item_of(&page, object.key());
        let observed = found.map_or(ObservedState::Absent, |json| self.observed(object, json));
        Ok((page.version, observed))
    }

    fn observed(&mut self, known: &CachedObject, json: &[u8]) -> ObservedState {
        let content = self.intake.content();
        match self.intake.read(json) {
            Ok(seen) if seen.uid() != known.uid() || seen.version() != known.version() => {
                ObservedState::Other
            }
            // Content that was not read in the same form cannot be compared, so uid and version decide.
            Ok(_) if !self.publisher.store().is_comparable(known, content) => ObservedState::Same,
            Ok(seen) if known.has_same_content(seen.json()) => ObservedState::Same,
            _ => ObservedState::Differs,
        }
    }

    /// Asks for a list of one object, in its present state or as it was at a version.
    async fn ask_for(
        &self,
        key: &ObjectKey,
        at: Option<&ResourceVersion>,
    ) -> Result<Vec<u8>, ReflectorError> {
        let query = self.queries.one(Some(key.name()), at);
        self.ask(key.namespace().map(Arc::from), query).await
    }

    async fn ask(
        &self,
        namespace: Option<Arc<str>>,
        query: String,
    ) -> Result<Vec<u8>, ReflectorError> {
        let request = SourceRequest {
            namespace,
            gzip: false,
            ..self.request(query, false)
        };
        let response = self.open(request).await?;
        self.read(response).await
    }
}

/// Returns the object of a list with the given key.
fn item_of<'a>(page: &'a Page<'_>, key: &ObjectKey) -> Option<&'a [u8]> {
    let mut items = page.items.iter().map(Item::json);
    items.find(|item| RawObject::key_of(item).as_ref() == Some(key))
}

fn newer<'a>(a: &'a Arc<CachedObject>, b: &'a Arc<CachedObject>) -> &'a Arc<CachedObject> {
    match b.version().compare(a.version()) {
        Some(Ordering::Greater) => b,
        _ => a,
    }
}
