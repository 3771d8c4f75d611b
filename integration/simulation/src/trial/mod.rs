//! The program that tests Lariat itself: handlers come and go, misbehave, write and read.

mod behaviour;
mod dice;
mod handlers;
mod kinds;
mod loads;
mod operator;
mod own;
mod replicas;
mod setup;
mod trial;

use std::sync::Arc;

use lariat_sim::Simulation;
use lariat_sim::internals::SimulationExt;
use parking_lot::Mutex;

use crate::check::Checks;
use crate::coverage::Coverage;
use crate::observer::Watcher;
use crate::plan;

/// A simulation that tests Lariat.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The simulation, which each checker follows.
    pub simulation: Simulation,
    /// The faults that its runs have met, all together.
    pub coverage: Arc<Mutex<Coverage>>,
}

impl Trial {
    fn new(simulation: Simulation, checks: impl Fn() -> Checks + Send + Sync + 'static) -> Self {
        let coverage = Arc::<Mutex<Coverage>>::default();
        let of_runs = Arc::clone(&coverage);
        Self {
            simulation: simulation.observer(move || Box::new(Watcher::new(checks(), &of_runs))),
            coverage,
        }
    }
}

/// Creates the simulation that tests Lariat.
///
/// Its handlers come and go, misbehave, write and read.
#[must_use]
pub fn of_lariat(seed: u64) -> Trial {
    Trial::new(trial::simulation(seed), Checks::all)
}

/// Creates a simulation of replicas with a leader or with sharded keys.
#[must_use]
pub fn of_replicas(seed: u64) -> Trial {
    let (simulation, setup) = replicas::simulation(seed);
    Trial::new(simulation, move || Checks::of_replicas(&setup))
}

/// Creates a simulation whose plan has commands about kinds.
fn planned(seed: u64, kinds: [String; 3]) -> Simulation {
    Simulation::new(seed).planner(move |chaos, bounds| {
        plan::generate(seed, chaos, bounds, &kinds.each_ref().map(String::as_str))
    })
}
