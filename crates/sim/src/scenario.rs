//! The parts of a run that do not depend on its plan.

use std::sync::Arc;

use crate::chaos::Chaos;
use crate::objects::Objects;
use crate::plan::{Names, PlanBounds};
use crate::program::{AtRest, Program};
use crate::setup::Setup;

/// The seed of a run, its programs, kinds and checks.
#[derive(Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) programs: Vec<(Arc<str>, Program)>,
    pub(crate) kinds: Vec<Objects>,
    pub(crate) chaos: Chaos,
    pub(crate) checks: Vec<(Arc<str>, AtRest)>,
    pub(crate) commands: bool,
    pub(crate) logs: bool,
    /// The number of objects of the first kind when the program starts.
    pub(crate) filled: usize,
    /// The setup by which the programs share their work, if they are replicas of the trial.
    pub(crate) replicas: Option<Arc<Setup>>,
}

impl Scenario {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            programs: Vec::new(),
            kinds: Vec::new(),
            chaos: Chaos::default(),
            checks: Vec::new(),
            commands: false,
            logs: false,
            filled: 0,
            replicas: None,
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
            commands: self.commands,
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
