//! Short stories for the checkers' own tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Cause, Causes, Gvk, ObjectKey};

use super::{Check, Findings};
use crate::activity::{Act, Activity, Sample};
use crate::event::{Event, HandlerId, Moment, Next};
use crate::oracle::Oracle;

/// A checker with what it is shown, and what it found.
pub(super) struct Story<C> {
    pub(super) check: C,
    pub(super) oracle: Oracle,
    found: Findings,
    number: u64,
    /// The number of the next run.
    run: u64,
}

pub(super) fn kind() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

pub(super) fn handler(name: &str) -> HandlerId {
    HandlerId {
        process: Arc::from("p"),
        life: 0,
        kind: kind(),
        name: Arc::from(name),
    }
}

/// A controller that is at rest, with one handler, `h`.
pub(super) fn sample(workers: Option<usize>) -> Sample {
    Sample {
        kind: kind(),
        workers,
        ready: 0,
        held: 0,
        handed_out: 0,
        waiting: vec![(Arc::from("h"), 0)],
        slowed: BTreeSet::new(),
        is_synced: true,
        is_on_demand: false,
        version: 0,
    }
}

impl<C: Check> Story<C> {
    pub(super) fn of(check: C) -> Self {
        Self {
            check,
            oracle: Oracle::default(),
            found: Vec::new(),
            number: 0,
            run: 0,
        }
    }

    /// Lets something happen at a time in milliseconds.
    pub(super) fn event(&mut self, millis: u64, event: &Event) {
        self.number += 1;
        let moment = Moment {
            number: self.number,
            at: Duration::from_millis(millis),
            actor: Arc::from("p"),
        };
        self.oracle.saw(&moment, event);
        self.found
            .extend(self.check.saw(&self.oracle, &moment, event));
    }

    pub(super) fn act(&mut self, millis: u64, what: Act) {
        let activity = Activity {
            process: Arc::from("p"),
            life: 0,
            what,
        };
        self.event(millis, &Event::Acted(activity));
    }

    pub(super) fn registered(&mut self, name: &str, limit: Option<usize>) {
        let (kind, name) = (kind(), Arc::from(name));
        self.act(0, Act::Registered { kind, name, limit });
    }

    pub(super) fn starts(&mut self, millis: u64) {
        self.act(millis, Act::Starting(BTreeMap::new()));
    }

    pub(super) fn begins(&mut self, millis: u64, name: &str, of: &str, causes: Causes) {
        self.run += 1;
        self.event(
            millis,
            &Event::Began {
                handler: handler(name),
                key: key(of),
                run: self.run,
                attempt: 1,
                object: None,
                causes: Arc::new(causes),
                loads: Some(1),
            },
        );
    }

    pub(super) fn ends(&mut self, millis: u64, name: &str, of: &str, next: Next) {
        let result = match next {
            Next::Done | Next::Again(_) => Some(Ok(())),
            Next::Retry(_) => Some(Err("no".to_owned())),
            Next::Panicked | Next::Dropped => None,
        };
        self.event(
            millis,
            &Event::Ended {
                handler: handler(name),
                key: key(of),
                run: self.run,
                result,
                next,
            },
        );
    }

    /// A call that ends at once.
    pub(super) fn calls(&mut self, millis: u64, name: &str, of: &str, cause: Cause) {
        self.begins(millis, name, of, cause.into());
        self.ends(millis, name, of, Next::Done);
    }

    /// Returns how many things were found.
    pub(super) fn found(&self) -> usize {
        self.found.len()
    }
}
