//! Reads are never older than the process's own writes.

use std::collections::BTreeMap;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Event, IncarnationId, Moment};

use super::noticed::Noticed;
use super::states::{Channel, Observation, since};
use super::wanted::Selections;
use super::{Check, Findings};
use crate::oracle::{Oracle, Past};

/// A process never reads a state older than its own write that was answered.
///
/// With a selection that only the API server evaluates there is no such promise (`Selection::with_fields`).
///
/// Until it has [noticed](Noticed) that a backup was restored, what it knows has higher versions than what it writes.
#[derive(Default)]
pub(super) struct OwnWrites {
    written: BTreeMap<Own, Answered>,
    selections: Selections,
    noticed: Noticed,
}

/// An object in an incarnation of a process.
type Own = (IncarnationId, Gvk, ObjectKey);

/// An answer to a write.
#[derive(Clone, Copy)]
struct Answered {
    /// Counts events; see [`Moment::number`].
    number: u64,
    /// The number of the state the write led to.
    state: u64,
}

impl Check for OwnWrites {
    fn name(&self) -> &'static str {
        "own writes are read"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.selections.saw(event);
        self.noticed.saw(oracle, moment, event);
        match event {
            Event::Wrote {
                incarnation,
                kind,
                key,
                written,
            } => {
                if let Some(past) = Past::of_write(oracle.states(kind, key), written) {
                    let own = (incarnation.clone(), kind.clone(), key.clone());
                    let (number, state) = (moment.number, past.number);
                    self.written.insert(own, Answered { number, state });
                }
                // What a write returned is the program's business; only what it reads afterwards is compared.
                return Vec::new();
            }
            Event::IncarnationEnded(incarnation) => {
                self.written.retain(|own, _| own.0 != *incarnation)
            }
            _ => {}
        }
        // What a subscriber gets may be on its way while the answer comes.
        let observation = Observation::of(event)
            .filter(|observation| !matches!(observation.channel, Channel::Subscriber(_)));
        let found = observation.and_then(|observation| self.look(oracle, moment, &observation));
        found.into_iter().collect()
    }
}

impl OwnWrites {
    fn look(
        &self,
        oracle: &Oracle,
        moment: &Moment,
        observation: &Observation<'_>,
    ) -> Option<String> {
        let own = (
            observation.incarnation.clone(),
            observation.kind.clone(),
            observation.key.clone(),
        );
        let Answered { number, state } = *self.written.get(&own)?;
        // A backup that was restored since may not have the write.
        let has_noticed = self.noticed.is_by(oracle, moment, observation.incarnation);
        if oracle.reset_at > number || !has_noticed {
            return None;
        }
        let selected = self
            .selections
            .of(observation.incarnation, observation.kind);
        if selected.are_by_server() {
            return None;
        }
        let states = oracle.states(observation.kind, observation.key);
        // What has not been there for long is forgotten.
        let is_forgotten = states.is_empty() && observation.object.is_none();
        let states = &states[since(states, state)..];
        let mut states_since = states.iter();
        let is_new = is_forgotten || states_since.any(|past| observation.is(past, &selected));
        if is_new {
            return None;
        }
        let version = states.first().map_or(0, |past| past.version);
        Some(format!(
            "{} after a write that was answered with version {version}",
            observation.says()
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lariat_cluster::Commit;
    use lariat_sim::internals::{ActivityKind, Written};

    use super::*;
    use crate::check::harness::{CheckHarness, Server, incarnation, key, kind};

    /// A process that has seen a deletion, but not yet that it was undone.
    ///
    /// A backup that has the object is restored.
    struct Restored(CheckHarness<OwnWrites>, u64);

    impl Restored {
        /// Restores the backup at 20 s, after some acts of the process.
        ///
        /// The factory starts at 0.
        async fn after(acts: &[(u64, ActivityKind)]) -> Self {
            let server = Server::start().await;
            let mut harness = CheckHarness::of(OwnWrites::default());
            harness.event(0, &Event::Committed(Commit::Reset { revision: 0 }));
            harness.starts(0);
            let version = server.create("a").await.revision();
            let backup = server.backup();
            server.delete("a").await;
            harness.commits(1, server.take());
            for (at, act) in acts {
                harness.act(*at, act.clone());
            }
            server.restore(&backup).await;
            harness.commits(20_000, server.take());
            Self(harness, version)
        }

        /// Writes the object, and finds none in the cache.
        fn misses(&mut self, millis: u64) -> usize {
            let (kind, key) = (kind(), key("a"));
            let wrote = Event::Wrote {
                incarnation: incarnation(),
                kind: kind.clone(),
                key: key.clone(),
                written: Written::State(self.1),
            };
            self.0.event(millis, &wrote);
            let read = Event::Read {
                incarnation: incarnation(),
                kind,
                key,
                object: None,
            };
            self.0.event(millis, &read);
            self.0.found()
        }
    }

    #[tokio::test]
    async fn a_write_that_is_not_read_is_reported_once_a_restore_can_be_noticed() {
        let mut restored = Restored::after(&[]).await;
        assert_eq!(restored.misses(139_999), 0);
        assert_eq!(restored.misses(140_000), 1);
    }

    #[tokio::test]
    async fn a_factory_that_is_stopped_notices_no_restore_until_it_has_run_again() {
        let stop = [
            (10_000, ActivityKind::Stopping(Duration::ZERO)),
            (10_000, ActivityKind::Stopped),
        ];
        let mut restored = Restored::after(&stop).await;
        assert_eq!(restored.misses(200_000), 0);
        restored.0.starts(300_000);
        assert_eq!(restored.misses(419_999), 0);
        assert_eq!(restored.misses(420_000), 1);
        // What it has noticed it knows.
        restored
            .0
            .act(421_000, ActivityKind::Stopping(Duration::ZERO));
        restored.0.act(421_000, ActivityKind::Stopped);
        assert_eq!(restored.misses(422_000), 2);
    }
}
