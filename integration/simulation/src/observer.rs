//! What follows the runs that test Lariat.

use std::sync::Arc;

use lariat_sim::internals::{Event, Found, LiveProcess, MetFault, Moment, Observer, Rest};
use parking_lot::Mutex;

use crate::check::Checks;
use crate::coverage::{Coverage, FaultClass, ProcessStates};
use crate::oracle::Oracle;

/// The oracle, the checkers and the coverage of a run.
pub(crate) struct Watcher {
    oracle: Oracle,
    checks: Checks,
    coverage: Arc<Mutex<Coverage>>,
}

impl Watcher {
    /// Begins with a run; its coverage is added to what there is.
    pub(crate) fn new(checks: Checks, coverage: &Arc<Mutex<Coverage>>) -> Self {
        Self {
            oracle: Oracle::default(),
            checks,
            coverage: Arc::clone(coverage),
        }
    }
}

impl Observer for Watcher {
    fn saw(&mut self, moment: &Moment, event: &Event) -> Found {
        // The oracle first: checkers compare the event with what the server had at this moment, this event included.
        self.oracle.saw(moment, event);
        self.checks.saw(&self.oracle, moment, event)
    }

    fn at_rest(&mut self, rest: &Rest<'_>) -> Found {
        self.checks.at_rest(&self.oracle, rest)
    }

    fn met(&mut self, fault: MetFault, process: &LiveProcess) {
        if let Some(fault) = FaultClass::of(fault) {
            self.coverage.lock().met(fault, ProcessStates::of(process));
        }
    }
}
