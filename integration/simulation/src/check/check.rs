//! The trait of checkers.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::KindStatus;
use lariat_controller::{ControllerStatus, SharedControllerFactory};
use lariat_core::{Gvk, TableSize};

use crate::actors::{HandlerId, IncarnationId};
use crate::event::{Event, Moment};
use crate::oracle::Oracle;

/// The findings of a checker, in words.
pub(crate) type Findings = Vec<String>;

/// One thing that must hold.
pub(crate) trait Check: Send {
    /// Returns its name, as violations and `docs/simulator.md` have it.
    fn name(&self) -> &'static str;

    /// Checks an event, which the oracle already has.
    fn saw(&mut self, _oracle: &Oracle, _moment: &Moment, _event: &Event) -> Findings {
        Vec::new()
    }

    /// Checks a process at rest: faults have ended and nothing is in progress.
    fn at_rest(&mut self, _oracle: &Oracle, _rest: &Rest<'_>) -> Findings {
        Vec::new()
    }
}

/// A living process at rest.
pub(crate) struct Rest<'a> {
    /// Virtual time since the start of the run.
    pub(crate) now: Duration,
    /// The kinds that are served by now.
    pub(crate) served: &'a [Gvk],
    pub(crate) incarnation: &'a IncarnationId,
    pub(crate) factories: &'a [SharedControllerFactory],
    /// The sizes of the tables of its factories and operators.
    pub(crate) remembered: &'a [TableSize],
    pub(crate) controllers: &'a [ControllerStatus],
    pub(crate) caches: &'a [KindStatus],
}

impl Rest<'_> {
    /// Returns a handler of this incarnation.
    pub(super) fn handler(&self, kind: &Gvk, name: &Arc<str>) -> HandlerId {
        HandlerId {
            incarnation: self.incarnation.clone(),
            kind: kind.clone(),
            name: Arc::clone(name),
        }
    }
}
