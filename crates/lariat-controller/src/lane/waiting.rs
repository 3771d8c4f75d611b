//! Keys that wait for a lane, without a worker.

use lariat_core::ObjectKey;
use lariat_queue::{Payload as _, Priority};

use super::line::Line;
use crate::payload::Payload;

/// A key that waits for a lane.
pub(crate) struct Waiting {
    pub(crate) key: ObjectKey,
    pub(crate) payload: Payload,
    pub(crate) priority: Priority,
    /// How many times in a row the handler has failed for the key.
    pub(crate) failures: u32,
}

/// Those that wait, each once, in the order in which their turn comes; see [`Line`].
pub(super) struct WaitingLine(Line<ObjectKey, Rest>);

/// What is known of a key beside its place.
struct Rest {
    payload: Payload,
    failures: u32,
}

impl WaitingLine {
    pub(super) fn join(&mut self, waiting: Waiting) {
        let Waiting {
            key,
            payload,
            priority,
            failures,
        } = waiting;
        let rest = Rest { payload, failures };
        self.0.join(key, priority, rest, |mine, later| {
            mine.payload.merge(later.payload);
            mine.failures = mine.failures.max(later.failures);
        });
    }

    pub(super) fn next(&mut self) -> Option<Waiting> {
        self.0.next().map(waiting)
    }

    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        self.0.take_all().into_iter().map(waiting).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn waiting((key, priority, rest): (ObjectKey, Priority, Rest)) -> Waiting {
    Waiting {
        key,
        payload: rest.payload,
        priority,
        failures: rest.failures,
    }
}

impl Default for WaitingLine {
    fn default() -> Self {
        Self(Line::new())
    }
}
