//! For `integration/simulation`, which tests Lariat itself: no part of the API, and never stable.
//!
//! An [`Observer`] follows a run, event by event; [`SimulationExt`] and its like set and read what users do not.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use serde_json::Value;

pub use crate::activity::{Activity, ActivityKind, CacheProgress, Sample};
pub use crate::actors::{HandlerId, IncarnationId, Subscriber};
pub use crate::event::{Event, LEASES, Moment, Next, WINDOW, Written};
pub use crate::lease_report::{LeaseReport, Member, ReportPhase};
pub use crate::observed::{Observed, number_of, version_of};
pub use crate::observer::{Found, LiveProcess, MetFault, Observer, Rest};
pub use crate::opaque::Opaque;
pub use crate::panics::PLANNED;
pub use crate::plan::{
    Background, Change, Fault, FaultKind, PlanBounds, PlanStep, ProcessFault, StepAction, Swarm,
    Write,
};
pub use crate::rate::Rate;
pub use crate::scenario::Replicas;
pub use crate::stamp::Stamp;
pub use crate::world::LABEL;

use crate::chaos::Chaos;
use crate::objects::Objects;
use crate::process::Process;
use crate::simulation::Simulation;

/// Sets what the trials of Lariat set.
pub trait SimulationExt {
    /// Follows each run with an observer of its own.
    #[must_use]
    fn observer(self, make: impl Fn() -> Box<dyn Observer> + Send + Sync + 'static) -> Self;

    /// Makes the plan in place of one that is drawn from the seed.
    #[must_use]
    fn planner(
        self,
        make: impl Fn(&Chaos, PlanBounds) -> Vec<PlanStep> + Send + Sync + 'static,
    ) -> Self;

    /// Creates so many objects of the first kind before the programs start.
    #[must_use]
    fn filled(self, objects: usize) -> Self;

    /// Makes the programs replicas that share their work by leases.
    #[must_use]
    fn replicas(self, replicas: Replicas) -> Self;
}

impl SimulationExt for Simulation {
    fn observer(mut self, make: impl Fn() -> Box<dyn Observer> + Send + Sync + 'static) -> Self {
        self.scenario.observers = Arc::new(make);
        self
    }

    fn planner(
        mut self,
        make: impl Fn(&Chaos, PlanBounds) -> Vec<PlanStep> + Send + Sync + 'static,
    ) -> Self {
        self.planner = Some(Arc::new(make));
        self
    }

    fn filled(mut self, objects: usize) -> Self {
        self.scenario.filled = objects;
        self
    }

    fn replicas(mut self, replicas: Replicas) -> Self {
        self.scenario.replicas = Some(replicas);
        self
    }
}

/// Sets and reads what plans depend on.
pub trait ChaosExt {
    /// Makes the pauses between events longer by a factor.
    #[must_use]
    fn pace(self, factor: u32) -> Self;

    /// Returns how long writes and faults go on.
    fn lasts(&self) -> Duration;

    /// Returns the number of names per kind.
    fn name_count(&self) -> u16;
}

impl ChaosExt for Chaos {
    fn pace(self, pace: u32) -> Self {
        Self { pace, ..self }
    }

    fn lasts(&self) -> Duration {
        self.duration
    }

    fn name_count(&self) -> u16 {
        self.names
    }
}

/// Sets how the kinds of the trials differ from those of users.
pub trait ObjectsExt {
    /// Defines the kind in the same way each time.
    ///
    /// It is for objects that hold finalizers of the program: those that the program cannot see any more keep the CRD
    /// of another version from going.
    #[must_use]
    fn of_one_version(self) -> Self;

    /// Allows contents to name owners that need not exist: nothing is collected then.
    #[must_use]
    fn owned(self) -> Self;

    /// Returns the usual CRD of the kind.
    fn usual_crd(&self) -> Value;
}

impl ObjectsExt for Objects {
    fn of_one_version(mut self) -> Self {
        self.has_one_version = true;
        self
    }

    fn owned(mut self) -> Self {
        self.has_owners = true;
        self
    }

    fn usual_crd(&self) -> Value {
        self.crd(0)
    }
}

/// Reports actions of the programs of trials, and gives them commands.
pub trait ProcessExt {
    /// Reports an activity of the process with its factory.
    fn acts(&self, what: ActivityKind);

    /// Reports an action of the program.
    fn did(&self, action: Opaque);

    /// Reports that a handler is about to write, with the mark it leaves in the object.
    fn writes(&self, kind: &Gvk, key: &ObjectKey, mark: &str);

    /// Waits for the next thing the plan asks of the program.
    fn command(&self) -> impl Future<Output = Option<Opaque>> + Send;

    /// Allows the program to end by itself, as after a lost lease; it is restarted later.
    fn start_again(&self, after: Duration);

    /// Returns the identity with which this incarnation of the process holds leases.
    fn identity(&self) -> String;
}

impl ProcessExt for Process {
    fn acts(&self, what: ActivityKind) {
        Self::acts(self, what);
    }

    fn did(&self, action: Opaque) {
        Self::did(self, action);
    }

    fn writes(&self, kind: &Gvk, key: &ObjectKey, mark: &str) {
        Self::writes(self, kind, key, mark);
    }

    fn command(&self) -> impl Future<Output = Option<Opaque>> + Send {
        Self::command(self)
    }

    fn start_again(&self, after: Duration) {
        Self::start_again(self, after);
    }

    fn identity(&self) -> String {
        self.id().identity()
    }
}
