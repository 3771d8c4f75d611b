//! The order of states: that in which the server had them.

use std::collections::BTreeMap;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, IncarnationId, Moment};

use super::observation::{Channel, Observation, Way, since};
use crate::check::wanted::Selections;
use crate::check::{Check, Findings};
use crate::oracle::{Oracle, Past};

/// ProcessStates are shown in the order in which the server had them.
///
/// An object is shown as gone only if it was.
///
/// What is shown counts as the earliest state it can be. Before its first state an object was not there, and a process
/// whose watch is behind may not know it yet: a handler that is called for a related object then is shown nothing. But
/// what a cache has is not shown as gone at first sight: it has what was there at the version up to which it said that
/// it is complete. That is not judged where a part of a kind was selected, or a backup restored.
#[derive(Default)]
pub(in crate::check) struct Forward {
    /// The number each state that was shown last has in the oracle's list.
    last: BTreeMap<Way, BTreeMap<ObjectKey, u64>>,
    /// The versions up to which caches are complete.
    complete: BTreeMap<IncarnationId, BTreeMap<Gvk, u64>>,
    selections: Selections,
}

impl Check for Forward {
    fn name(&self) -> &'static str {
        "states in their order"
    }

    fn saw(&mut self, oracle: &Oracle, _: &Moment, event: &Event) -> Findings {
        self.selections.saw(event);
        self.note(event);
        if let Some(way) = closed(event) {
            self.last.remove(&way);
        }
        let Some(observation) = Observation::of(event) else {
            return Vec::new();
        };
        let states = oracle.states(observation.kind, observation.key);
        let last = self.last.entry(observation.way()).or_default();
        let from = last.get(observation.key).copied();
        let selected = self
            .selections
            .of(observation.incarnation, observation.kind);
        let start = match (from, &observation.object) {
            // Not after it: the same state may be shown again, for example by a retry.
            (Some(from), _) => since(states, from),
            (None, Some(_)) => 0,
            (None, None) => {
                let caches = self.complete.get(observation.incarnation);
                let version = caches.and_then(|caches| caches.get(observation.kind));
                // A cache of a part of the kind is complete without the object, and versions of another epoch do not
                // compare.
                let is_judged = oracle.epoch() <= 1 && selected.is_all();
                let Some(version) = version.filter(|_| is_judged) else {
                    return Vec::new();
                };
                as_at(states, *version)
            }
        };
        let mut states_since = states[start..].iter();
        let now = states_since.find(|past| observation.is(past, &selected));
        match now {
            Some(past) => {
                last.insert(observation.key.clone(), past.number);
                Vec::new()
            }
            // Another checker reports states that the server never had; old deletions are forgotten.
            None if from.is_none() && observation.object.is_some() => Vec::new(),
            None if states.is_empty() && observation.object.is_none() => Vec::new(),
            None => {
                let last = states[start..].first().map_or(0, |past| past.version);
                vec![format!("{} after version {last}", observation.says())]
            }
        }
    }
}

impl Forward {
    /// Records the progress of caches, and forgets incarnations that are over.
    fn note(&mut self, event: &Event) {
        match event {
            Event::IncarnationEnded(incarnation) => {
                self.last.retain(|way, _| way.0 != *incarnation);
                self.complete.remove(incarnation);
            }
            Event::Cached { incarnation, kinds } => {
                let versions = kinds
                    .iter()
                    .filter_map(|it| Some((it.kind.clone(), it.complete?)));
                self.complete
                    .insert(incarnation.clone(), versions.collect());
            }
            _ => {}
        }
    }
}

/// Returns the way that ends with an event.
///
/// Handlers and subscribers that come back are others.
fn closed(event: &Event) -> Option<Way> {
    match event {
        Event::Acted(activity) => {
            let handler = activity.deregistered()?;
            let channel = Channel::Handler(handler.name);
            Some((handler.incarnation, handler.kind, channel))
        }
        Event::Unsubscribed(of) => {
            let channel = Channel::Subscriber(of.number);
            Some((of.incarnation.clone(), of.kind.clone(), channel))
        }
        _ => None,
    }
}

/// Returns the place of the state at a version.
fn as_at(states: &[Past], version: u64) -> usize {
    let until = states.partition_point(|past| past.version <= version);
    until.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use lariat_core::Causes;
    use lariat_sim::internals::CacheProgress;

    use super::*;
    use crate::check::harness::{CheckHarness, Server, incarnation, kind, shown};

    /// Returns how much is found if a handler is shown an object or none.
    ///
    /// The object was created and deleted; `shows` has one entry for each call.
    async fn found(shows: &[bool]) -> usize {
        let server = Server::start().await;
        let mut harness = CheckHarness::of(Forward::default());
        let object = server.create("a").await;
        server.delete("a").await;
        harness.commits(1, server.take());
        for is_shown in shows {
            let object = is_shown.then(|| shown(&object));
            harness.begins_with(2, "h", "a", object);
        }
        harness.found()
    }

    #[tokio::test]
    async fn an_object_that_comes_back_is_found() {
        assert_eq!(found(&[true, false]).await, 0);
        assert_eq!(found(&[true, false, true]).await, 1);
    }

    /// Returns how much is found if a handler is shown no object although there is one.
    ///
    /// The cache says that it has everything up to some version.
    async fn found_missing(complete: impl Fn(u64) -> Option<u64>) -> usize {
        let server = Server::start().await;
        let mut harness = CheckHarness::of(Forward::default());
        let object = server.create("a").await;
        harness.commits(1, server.take());
        let reached = CacheProgress {
            kind: kind(),
            loads: 1,
            complete: complete(object.revision()),
        };
        let (incarnation, kinds) = (incarnation(), vec![reached]);
        let cached = Event::Cached { incarnation, kinds };
        harness.event(2, &cached);
        harness.begins(3, "h", "a", Causes::default());
        harness.found()
    }

    #[tokio::test]
    async fn an_object_that_a_complete_cache_has_is_not_gone_at_first_sight() {
        assert_eq!(found_missing(Some).await, 1);
        assert_eq!(found_missing(|version| Some(version - 1)).await, 0);
        assert_eq!(found_missing(|_| None).await, 0);
    }

    #[tokio::test]
    async fn an_object_that_is_not_known_yet_does_not_come_back() {
        // A related object brings the key before the watch has shown the object.
        assert_eq!(found(&[false, true, false]).await, 0);
        assert_eq!(found(&[false, true, false, true]).await, 1);
    }
}
