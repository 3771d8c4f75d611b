//! All checkers of a run.

use std::sync::Arc;

use lariat_sim::internals::{Event, Moment, Rest};

use super::check::Check;
use super::{
    calls, due, fairness, idle, lanes, lifecycle, memory, operator, outage, own_writes, quiet,
    relists, replicas, requests, states,
};
use crate::oracle::Oracle;
use crate::setup::Setup;

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
            Box::<relists::Relists>::default(),
            Box::<requests::NoStorm>::default(),
            Box::<outage::OtherKinds>::default(),
            Box::<memory::Memory>::default(),
        ];
        // They find nothing in runs without an operator, so they need no condition here.
        all.extend(operator::all());
        Self(all)
    }

    /// Returns the checkers of replicas: those that hold for all programs, and their own.
    ///
    /// Other checkers assume that every process handles every key.
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
