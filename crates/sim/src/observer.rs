//! The trait of what follows a run beside its trace.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::KindStatus;
use lariat_controller::{ControllerStatus, SharedControllerFactory};
use lariat_core::{Gvk, TableSize};

use crate::actors::{HandlerId, IncarnationId};
use crate::event::{Event, Moment};
use crate::plan::{FaultKind, ProcessFault};

/// Violations: the name of the check, and what is wrong.
pub type Found = Vec<(&'static str, String)>;

/// Makes the observer of a run.
pub(crate) type Observers = Arc<dyn Fn() -> Box<dyn Observer> + Send + Sync>;

/// Follows one run, and reports violations.
pub trait Observer: Send {
    /// Sees an event, in the order of execution.
    fn saw(&mut self, moment: &Moment, event: &Event) -> Found;

    /// Sees a living process at rest: faults have ended and nothing is in progress.
    fn at_rest(&mut self, rest: &Rest<'_>) -> Found;

    /// Sees a fault that has an effect on a living process.
    fn met(&mut self, fault: MetFault, process: &LiveProcess);
}

/// A fault that has an effect.
#[derive(Debug, Clone, Copy)]
pub enum MetFault {
    /// A fault of the network or the cluster.
    Cluster(FaultKind),
    /// A fault of the process itself.
    Process(ProcessFault),
}

/// The state of a living process at a moment.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a process is in any of these states"
)]
pub struct LiveProcess {
    /// Whether it gets no turns.
    pub is_paused: bool,
    /// Whether it was killed or ended before.
    pub is_restarted: bool,
    /// Whether it was asked to end.
    pub is_stopping: bool,
    /// Whether a write was sent that is not answered.
    pub is_writing: bool,
    /// The caches of its factories.
    pub caches: Vec<KindStatus>,
    /// The controllers of its factories.
    pub controllers: Vec<ControllerStatus>,
}

/// A living process at rest.
#[derive(Debug)]
pub struct Rest<'a> {
    /// Virtual time since the start of the run.
    pub now: Duration,
    /// The kinds that are served by now.
    pub served: &'a [Gvk],
    /// The incarnation of the process.
    pub incarnation: &'a IncarnationId,
    /// Its factories.
    pub factories: &'a [SharedControllerFactory],
    /// The sizes of the tables of its factories and operators.
    pub remembered: &'a [TableSize],
    /// The controllers of its factories.
    pub controllers: &'a [ControllerStatus],
    /// The caches of its factories.
    pub caches: &'a [KindStatus],
}

impl Rest<'_> {
    /// Returns a handler of this incarnation.
    #[must_use]
    pub fn handler(&self, kind: &Gvk, name: &Arc<str>) -> HandlerId {
        HandlerId {
            incarnation: self.incarnation.clone(),
            kind: kind.clone(),
            name: Arc::clone(name),
        }
    }
}

/// Reports nothing: the observer of users' simulations.
pub(crate) struct NoObserver;

impl Observer for NoObserver {
    fn saw(&mut self, _: &Moment, _: &Event) -> Found {
        Found::new()
    }

    fn at_rest(&mut self, _: &Rest<'_>) -> Found {
        Found::new()
    }

    fn met(&mut self, _: MetFault, _: &LiveProcess) {}
}
