//! The parts of a run that do not depend on its plan.

use std::sync::Arc;
use std::time::Duration;

use crate::chaos::Chaos;
use crate::objects::Objects;
use crate::observer::{NoObserver, Observers};
use crate::plan::{Names, PlanBounds};
use crate::program::{AtRest, Program};
use crate::rate::Rate;

/// The seed of a run, its programs, kinds and checks.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) programs: Vec<(Arc<str>, Program)>,
    pub(crate) kinds: Vec<Objects>,
    pub(crate) chaos: Chaos,
    pub(crate) checks: Vec<(Arc<str>, AtRest)>,
    pub(crate) logs: bool,
    /// The number of objects of the first kind when the program starts.
    pub(crate) filled: usize,
    /// How the programs share their work, if they are replicas of a trial.
    pub(crate) replicas: Option<Replicas>,
    pub(crate) observers: Observers,
}

/// Programs that share their work by leases.
#[derive(Debug, Clone)]
pub struct Replicas {
    /// The rate of the clock of each program, in their order.
    pub rates: Vec<Rate>,
    /// The time after the last fault by which everything has a holder.
    pub settles: Duration,
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            programs: Vec::new(),
            kinds: Vec::new(),
            chaos: Chaos::default(),
            checks: Vec::new(),
            logs: false,
            filled: 0,
            replicas: None,
            observers: Arc::new(|| Box::new(NoObserver)),
        }
    }

    /// Returns the bounds of plans.
    pub(crate) fn plan_bounds(&self) -> PlanBounds {
        let customs = self.kinds.iter().filter(|kind| kind.is_custom()).count();
        PlanBounds {
            processes: self.programs.len(),
            kinds: self.kinds.len(),
            // Custom kinds stand last in the list.
            custom_from: self.kinds.len() - customs,
            names: self.chaos.names,
        }
    }

    pub(crate) fn names(&self) -> Names {
        let kinds = self.kinds.iter().map(|kind| kind.gvk().kind().to_owned());
        let processes = self.programs.iter().map(|(name, _)| Arc::clone(name));
        Names {
            kinds: kinds.collect(),
            processes: processes.collect(),
        }
    }
}
