//! The entry point: programs, a cluster, disturbances and checks.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use lariat_cluster::Cluster;

use crate::chaos::Chaos;
use crate::driver::Driver;
use crate::failure::Failure;
use crate::objects::Objects;
use crate::plan::{self, PlanBounds, PlanStep};
use crate::process::Process;
use crate::program::Program;
use crate::report::Report;
use crate::scenario::Scenario;
use crate::shrink;

/// Makes the plan of a run.
pub(crate) type Planner = Arc<dyn Fn(&Chaos, PlanBounds) -> Vec<PlanStep> + Send + Sync>;

/// A simulation of programs on one cluster, from one seed.
///
/// They run in one thread and in virtual time.
///
/// The same seed gives the same run: the order of tasks, every random number and every clock come from it.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lariat::sim::{Chaos, Objects, Simulation};
/// use lariat::{Context, Gvk, Outcome};
/// use std::time::Duration;
///
/// let report = Simulation::new(7)
///     .objects(Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps"))
///     .chaos(Chaos::default().duration(Duration::from_secs(10)))
///     .program("operator", |process| async move {
///         let factory = process.factory().build();
///         let config_maps = factory.for_object::<ConfigMap>();
///         config_maps.register_handler("log", |_: Context<ConfigMap>| async {
///             Ok(Outcome::done())
///         })?;
///         process.run(&factory, 2).await?;
///         Ok(())
///     })
///     .run()
///     .unwrap_or_else(|failure| panic!("{failure}"));
/// assert!(report.calls() > 0);
/// ```
#[derive(Clone)]
#[must_use = "a simulation does nothing until it is run"]
pub struct Simulation {
    pub(crate) scenario: Scenario,
    /// Makes the plan, in place of one that is drawn from the seed.
    pub(crate) planner: Option<Planner>,
    shrinks: bool,
}

impl Simulation {
    /// Creates a simulation from a seed, without programs.
    pub fn new(seed: u64) -> Self {
        Self {
            scenario: Scenario::new(seed),
            planner: None,
            shrinks: true,
        }
    }

    /// Adds a process that runs a program, each time it is started.
    ///
    /// Replicas are several processes with the same program. A program must run until [`Process::terminated`] resolves;
    /// one that returns earlier, or returns an error, fails the run.
    ///
    /// ```
    /// use lariat::sim::Simulation;
    ///
    /// // Two replicas of one program.
    /// let program = |process: lariat::sim::Process| async move {
    ///     process.terminated().await;
    ///     Ok(())
    /// };
    /// let simulation = Simulation::new(7).program("replica-0", program).program("replica-1", program);
    /// # drop(simulation);
    /// ```
    pub fn program<F, Fut>(mut self, name: &str, program: F) -> Self
    where
        F: Fn(Process) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let program: Program = Arc::new(move |process| {
            let running = program(process);
            // The error outlives its process in the violation, and as text it also makes two runs comparable.
            Box::pin(async move { running.await.map_err(|error| error.to_string()) })
        });
        self.scenario.programs.push((Arc::from(name), program));
        self
    }

    /// Adds a kind whose objects foreign clients write.
    pub fn objects(mut self, objects: Objects) -> Self {
        self.scenario.kinds.push(objects);
        self
    }

    /// Sets which disturbances happen, and for how long.
    pub fn chaos(mut self, chaos: Chaos) -> Self {
        self.scenario.chaos = chaos;
        self
    }

    /// Adds a check that must hold at rest.
    ///
    /// [`Cluster::objects`] shows what the server has.
    ///
    /// ```
    /// use lariat::Gvk;
    /// use lariat::sim::{Chaos, Objects, Simulation};
    /// use std::time::Duration;
    ///
    /// let report = Simulation::new(7)
    ///     .objects(Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps"))
    ///     .chaos(Chaos::default().duration(Duration::from_secs(5)).settle(Duration::from_secs(60)))
    ///     .program("idle", |process| async move {
    ///         process.terminated().await;
    ///         Ok(())
    ///     })
    ///     .at_rest("few objects", |cluster| match cluster.objects("configmaps").len() {
    ///         0..=20 => Ok(()),
    ///         more => Err(format!("there are {more}")),
    ///     })
    ///     .run();
    /// assert!(report.is_ok());
    /// ```
    pub fn at_rest(
        mut self,
        name: &str,
        check: impl Fn(&Cluster) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.scenario
            .checks
            .push((Arc::from(name), Arc::new(check)));
        self
    }

    /// Sets whether libraries' warnings and errors go into the trace (default false).
    pub fn logs(mut self, logs: bool) -> Self {
        self.scenario.logs = logs;
        self
    }

    /// Enables shrinking of failing plans before they are returned (default true).
    pub fn shrinks(self, shrinks: bool) -> Self {
        Self { shrinks, ..self }
    }

    /// Runs to the end on the calling thread.
    ///
    /// # Errors
    ///
    /// A check failed. The failure has the smallest plan that was found to reproduce it, and the trace of that run.
    ///
    /// # Panics
    ///
    /// It is called on a thread of a tokio runtime: a simulation drives runtimes of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::sim::{Chaos, Simulation};
    /// use std::time::Duration;
    ///
    /// let simulation = Simulation::new(3)
    ///     .chaos(Chaos::default().duration(Duration::from_secs(1)))
    ///     .program("reader", |process| async move {
    ///         // A fault may let it fail.
    ///         drop(process.client().apiserver_version().await);
    ///         process.terminated().await;
    ///         Ok(())
    ///     });
    /// match simulation.run() {
    ///     Ok(report) => assert!(report.requests() > 0),
    ///     Err(failure) => panic!("{failure}"),
    /// }
    /// ```
    pub fn run(&self) -> Result<Report, Box<Failure>> {
        let Scenario { seed, chaos, .. } = &self.scenario;
        let bounds = self.scenario.plan_bounds();
        let plan = match &self.planner {
            Some(planner) => planner(chaos, bounds),
            None => plan::generate(*seed, chaos, bounds),
        };
        let failure = match self.run_plan(&plan) {
            Ok(report) => return Ok(report),
            Err(failure) => failure,
        };
        if self.shrinks {
            return Err(shrink::shrink(&self.scenario, failure));
        }
        Err(failure)
    }

    /// Runs a plan to its end.
    pub(crate) fn run_plan(&self, plan: &[PlanStep]) -> Result<Report, Box<Failure>> {
        Driver::new(&self.scenario).run(plan)
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs: Vec<&str> = self
            .scenario
            .programs
            .iter()
            .map(|(name, _)| &**name)
            .collect();
        f.debug_struct("Simulation")
            .field("seed", &self.scenario.seed)
            .field("programs", &programs)
            .field("chaos", &self.scenario.chaos)
            .finish_non_exhaustive()
    }
}
