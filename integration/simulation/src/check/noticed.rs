//! The incarnations that have had the time to notice that a backup was restored.

use std::collections::BTreeMap;

use lariat_sim::internals::{Activity, ActivityKind, Event, IncarnationId, Moment};

use super::incarnations::Incarnations;
use crate::oracle::{NOTICED, Oracle};

/// The incarnations that have had the time to notice the last restored backup.
///
/// Only a process that runs, with a factory that runs, has a watch to notice it by: time counts from the last start of
/// the factory, and from when a pause of the process was over.
#[derive(Default)]
pub(super) struct Noticed {
    incarnations: Incarnations,
    /// The last epoch in which an incarnation ran long enough to notice the restore.
    ///
    /// It counts when the factory is stopped or the process paused.
    until: BTreeMap<IncarnationId, u32>,
}

impl Noticed {
    /// Observes an event; to be called before the checker looks at it.
    pub(super) fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) {
        match event {
            Event::Acted(Activity {
                incarnation,
                what: ActivityKind::Stopping(_) | ActivityKind::Paused,
            }) if self.has_run(oracle, moment, incarnation) => {
                self.until.insert(incarnation.clone(), oracle.epoch());
            }
            Event::IncarnationEnded(incarnation) => {
                self.until.remove(incarnation);
            }
            _ => {}
        }
        // Last, because `has_run` asks about the time before this event.
        self.incarnations.saw(moment, event);
    }

    /// Returns whether an incarnation must have noticed by now.
    pub(super) fn is_by(
        &self,
        oracle: &Oracle,
        moment: &Moment,
        incarnation: &IncarnationId,
    ) -> bool {
        let until = self.until.get(incarnation);
        until == Some(&oracle.epoch()) || self.has_run(oracle, moment, incarnation)
    }

    /// Returns whether the factory has run for long enough without a break.
    fn has_run(&self, oracle: &Oracle, moment: &Moment, incarnation: &IncarnationId) -> bool {
        // The first epoch begins with the cluster.
        if oracle.epoch() <= 1 {
            return true;
        }
        if oracle.may_be_unnoticed(moment) {
            return false;
        }
        self.incarnations.of(incarnation).is_none_or(|state| {
            let runs = state.runs != Some(false) && !state.stops;
            // Not from the restore: a factory that was stopped then notices nothing before its next start.
            runs && state.since + NOTICED <= moment.at
        })
    }
}
