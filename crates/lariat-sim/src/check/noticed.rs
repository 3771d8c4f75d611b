//! Which processes have had the time to notice that a backup was restored.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::lives::{LifeOf, Lives};
use crate::activity::{Act, Activity};
use crate::event::{Event, Moment};
use crate::oracle::Oracle;

/// How long after a restored backup a process may still take the versions of before for newer.
///
/// It notices when a request fails or a watch ends, and loads again then; that is also when the server is away.
const NOTICED: Duration = Duration::from_secs(120);

/// The lives that have had the time to notice the last restored backup.
///
/// Only a process that runs, with a factory that runs, has a watch to notice it by: time counts from the last start of
/// the factory, and from when a pause of the process was over.
#[derive(Default)]
pub(super) struct Noticed {
    lives: Lives,
    /// In which epoch a life last had run for long enough when its factory was stopped, or the process paused.
    until: BTreeMap<LifeOf, u32>,
}

impl Noticed {
    /// Takes an event in; to be called before the checker looks at it.
    pub(super) fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) {
        match event {
            Event::Acted(Activity {
                process,
                life,
                what: Act::Stopping(_) | Act::Paused,
            }) if self.has_run(oracle, moment, process, *life) => {
                let of = (Arc::clone(process), *life);
                self.until.insert(of, oracle.epoch());
            }
            Event::Life {
                process,
                life,
                is_alive: false,
            } => {
                self.until.remove(&(Arc::clone(process), *life));
            }
            _ => {}
        }
        self.lives.saw(moment, event);
    }

    /// Returns whether a life must have noticed by now.
    pub(super) fn is_by(
        &self,
        oracle: &Oracle,
        moment: &Moment,
        process: &Arc<str>,
        life: u32,
    ) -> bool {
        let until = self.until.get(&(Arc::clone(process), life));
        until == Some(&oracle.epoch()) || self.has_run(oracle, moment, process, life)
    }

    /// Returns whether the factory has run for long enough without a break.
    fn has_run(&self, oracle: &Oracle, moment: &Moment, process: &Arc<str>, life: u32) -> bool {
        // The first epoch begins with the cluster.
        if oracle.epoch() <= 1 {
            return true;
        }
        if oracle.was_restored_within(moment, NOTICED) {
            return false;
        }
        self.lives.of(process, life).is_none_or(|state| {
            let runs = state.runs != Some(false) && !state.stops;
            runs && state.since + NOTICED <= moment.at
        })
    }
}
