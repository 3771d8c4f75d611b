//! The checkers: what must hold, on the way and at rest.
//!
//! Each guarantee is one checker. Most look at events as they happen; what can only be said when faults have stopped and
//! nothing is under way is looked at once, at rest.

mod calls;
mod due;
mod fairness;
mod idle;
mod lanes;
mod lifecycle;
mod lives;
mod memory;
mod noticed;
mod operator;
mod outage;
mod own_writes;
mod quiet;
mod replicas;
mod requests;
mod states;
#[cfg(test)]
mod testing;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::KindStatus;
use lariat_controller::{ControllerStatus, SharedControllerFactory};
use lariat_core::{Gvk, Remembered};

use crate::event::{Event, HandlerId, LifeId, Moment};
use crate::oracle::Oracle;
use crate::setup::Setup;

/// What a checker found, in words.
pub(crate) type Findings = Vec<String>;

/// One thing that must hold.
pub(crate) trait Check: Send {
    /// Returns its name, as violations and `docs/simulator.md` have it.
    fn name(&self) -> &'static str;

    /// Looks at an event; the oracle knows it already.
    fn saw(&mut self, _oracle: &Oracle, _moment: &Moment, _event: &Event) -> Findings {
        Vec::new()
    }

    /// Looks at a process when faults have stopped and nothing is under way.
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
    pub(crate) life: &'a LifeId,
    pub(crate) factories: &'a [SharedControllerFactory],
    /// What its factories and operators remember.
    pub(crate) remembered: &'a [Remembered],
    pub(crate) controllers: &'a [ControllerStatus],
    pub(crate) caches: &'a [KindStatus],
}

impl Rest<'_> {
    /// Returns a handler of this life.
    fn handler(&self, kind: &Gvk, name: &Arc<str>) -> HandlerId {
        HandlerId {
            life: self.life.clone(),
            kind: kind.clone(),
            name: Arc::clone(name),
        }
    }
}

/// All checkers of a run.
pub(crate) struct Checks(Vec<Box<dyn Check>>);

impl Checks {
    pub(crate) fn all() -> Self {
        let mut all: Vec<Box<dyn Check>> = vec![
            Box::<calls::OneWorker>::default(),
            Box::<calls::LastCall>::default(),
            Box::<states::TrueStates>::default(),
            Box::<states::Forward>::default(),
            Box::<own_writes::OwnWrites>::default(),
            Box::<states::Subscribers>::default(),
            Box::<states::Caches>::default(),
            Box::<idle::FreeWorkers>::default(),
            Box::<lifecycle::FilledFirst>::default(),
            Box::<lifecycle::Stops>::default(),
            Box::<due::Promises>::default(),
            Box::<lanes::OnlyFailed>::default(),
            Box::<lanes::LateOnce>::default(),
            Box::<fairness::Overtaking>::default(),
            Box::<quiet::EmptyQueues>::default(),
            Box::<quiet::Counters>::default(),
            Box::<quiet::KindsInUse>::default(),
            Box::<requests::NoStorm>::default(),
            Box::<outage::OtherKinds>::default(),
            Box::<memory::Memory>::default(),
        ];
        all.extend(operator::all());
        Self(all)
    }

    /// Returns the checkers of replicas: those that hold for all programs, and their own.
    ///
    /// Others take it that every process handles every key.
    pub(crate) fn of_replicas(setup: &Arc<Setup>) -> Self {
        let mut all: Vec<Box<dyn Check>> = vec![
            Box::<calls::OneWorker>::default(),
            Box::<states::TrueStates>::default(),
            Box::<states::Forward>::default(),
            Box::<own_writes::OwnWrites>::default(),
            Box::<states::Caches>::default(),
            Box::<lanes::OnlyFailed>::default(),
            Box::<memory::Memory>::default(),
        ];
        all.extend(replicas::all(setup));
        Self(all)
    }

    pub(crate) fn saw(
        &mut self,
        oracle: &Oracle,
        moment: &Moment,
        event: &Event,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for check in &mut self.0 {
            let name = check.name();
            found.extend(
                check
                    .saw(oracle, moment, event)
                    .into_iter()
                    .map(|what| (name, what)),
            );
        }
        found
    }

    pub(crate) fn at_rest(
        &mut self,
        oracle: &Oracle,
        rest: &Rest<'_>,
    ) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for check in &mut self.0 {
            let name = check.name();
            found.extend(
                check
                    .at_rest(oracle, rest)
                    .into_iter()
                    .map(|what| (name, what)),
            );
        }
        found
    }
}
