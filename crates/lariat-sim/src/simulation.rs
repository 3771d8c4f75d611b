//! A run: programs, a cluster, what happens to them, and what must hold.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lariat_cluster::Cluster;

use crate::driver::Driver;
use crate::failure::Failure;
use crate::objects::Objects;
use crate::plan::{self, Cast, Names, Step};
use crate::process::Process;
use crate::report::Report;
use crate::setup::Setup;
use crate::shrink;

/// How a program ends.
pub(crate) type Ending = Result<(), String>;

/// What a process runs, each time it starts.
pub(crate) type Program = Arc<dyn Fn(Process) -> BoxFuture<'static, Ending> + Send + Sync>;

/// What a user's check gets to see, and says.
pub(crate) type AtRest = Arc<dyn Fn(&Cluster) -> Ending + Send + Sync>;

/// A simulation of programs on one cluster, from one seed.
///
/// They run in one thread and in virtual time.
///
/// The same seed gives the same run: the order of tasks, every random number and every clock come from it.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lariat_controller::{Context, Outcome};
/// use lariat_core::Gvk;
/// use lariat_sim::{Chaos, Objects, Simulation};
/// use std::time::Duration;
///
/// let report = Simulation::new(7)
///     .objects(Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps"))
///     .chaos(Chaos::default().lasts(Duration::from_secs(10)))
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
    pub(crate) seed: u64,
    pub(crate) programs: Vec<(Arc<str>, Program)>,
    pub(crate) kinds: Vec<Objects>,
    pub(crate) chaos: Chaos,
    pub(crate) checks: Vec<(Arc<str>, AtRest)>,
    pub(crate) commands: bool,
    pub(crate) logs: bool,
    /// How many objects of the first kind there are when the program starts.
    pub(crate) filled: usize,
    /// How the programs share their work, if they are replicas of the trial.
    pub(crate) replicas: Option<Arc<Setup>>,
    shrinks: bool,
    plan: Option<Arc<[Step]>>,
}

/// What may happen in a run, and for how long.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until a simulation has them"]
pub struct Chaos {
    pub(crate) lasts: Duration,
    pub(crate) rests: Duration,
    pub(crate) names: u16,
    pub(crate) faults: bool,
    pub(crate) kills: bool,
    /// How many times as long it takes until the next thing happens.
    pub(crate) pace: u32,
}

impl Default for Chaos {
    fn default() -> Self {
        Self {
            lasts: Duration::from_secs(60),
            rests: Duration::from_secs(20 * 60),
            names: 12,
            faults: true,
            kills: true,
            pace: 1,
        }
    }
}

impl Chaos {
    /// Sets for how much virtual time things happen (default a minute).
    ///
    /// Zero is for nothing but the start.
    ///
    /// They happen as often in a long run as in a short one.
    pub fn lasts(self, lasts: Duration) -> Self {
        Self { lasts, ..self }
    }

    /// Sets how long the program has to come to rest once all faults have ended (default 20 minutes).
    ///
    /// It has to be longer than the longest wait between two tries of the program.
    pub fn rests(self, rests: Duration) -> Self {
        Self { rests, ..self }
    }

    /// Sets how many names objects of a kind have at most (default 12; zero counts as one).
    pub fn names(self, names: u16) -> Self {
        Self { names, ..self }
    }

    /// Lets faults of the network and the cluster happen, or not (default true).
    pub fn faults(self, faults: bool) -> Self {
        Self { faults, ..self }
    }

    /// Lets processes be killed, restarted and paused, and their clocks jump, or not (default true).
    pub fn kills(self, kills: bool) -> Self {
        Self { kills, ..self }
    }
}

impl Simulation {
    /// Begins a simulation of a seed, without a program.
    pub fn new(seed: u64) -> Self {
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
            shrinks: true,
            plan: None,
        }
    }

    /// Makes the simulation that Lariat itself is tried with: handlers that come and go, misbehave, write and read.
    pub fn of_lariat(seed: u64) -> Self {
        crate::trial::simulation(seed)
    }

    /// Makes the simulation of replicas that elect a leader, or divide the keys among them.
    pub fn of_replicas(seed: u64) -> Self {
        crate::trial::replicas::simulation(seed)
    }

    /// Adds a process that runs a program, each time it is started.
    ///
    /// Several processes with one program are its replicas. A program that returns before it is asked to, or that
    /// returns an error, fails the run.
    pub fn program<F, Fut>(mut self, name: &str, program: F) -> Self
    where
        F: Fn(Process) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send + 'static,
    {
        let program: Program = Arc::new(move |process| {
            let running = program(process);
            Box::pin(async move { running.await.map_err(|error| error.to_string()) })
        });
        self.programs.push((Arc::from(name), program));
        self
    }

    /// Adds a kind whose objects foreign clients write.
    pub fn objects(mut self, objects: Objects) -> Self {
        self.kinds.push(objects);
        self
    }

    /// Sets what may happen, and for how long.
    pub fn chaos(self, chaos: Chaos) -> Self {
        Self { chaos, ..self }
    }

    /// Adds something that must hold when faults have ended and the program has come to rest.
    ///
    /// [`Cluster::objects`] shows what the server has.
    pub fn at_rest(
        mut self,
        name: &str,
        check: impl Fn(&Cluster) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.checks.push((Arc::from(name), Arc::new(check)));
        self
    }

    /// Puts warnings and errors that libraries log into the trace, or not (default false).
    pub fn logs(self, logs: bool) -> Self {
        Self { logs, ..self }
    }

    /// Looks for a smaller plan that still fails before a failure is returned, or not (default true).
    pub fn shrinks(self, shrinks: bool) -> Self {
        Self { shrinks, ..self }
    }

    /// Runs to the end on the calling thread.
    ///
    /// # Errors
    ///
    /// Something that must hold does not. The failure has the smallest plan that was found to lead to it, and the trace
    /// of that run.
    ///
    /// # Panics
    ///
    /// It is called on a thread of a tokio runtime: a simulation drives runtimes of its own.
    pub fn run(&self) -> Result<Report, Box<Failure>> {
        let plan = match (&self.plan, &self.replicas) {
            (Some(plan), _) => plan.to_vec(),
            (None, Some(setup)) => crate::trial::replicas::plan(setup, &self.chaos),
            (None, None) => plan::generate(self.seed, &self.chaos, self.cast()),
        };
        let failure = match self.run_plan(&plan) {
            Ok(report) => return Ok(report),
            Err(failure) => failure,
        };
        if self.shrinks {
            return Err(self.shrink(failure));
        }
        Err(failure)
    }

    /// Looks for a smaller plan that fails alike.
    pub(crate) fn shrink(&self, failure: Box<Failure>) -> Box<Failure> {
        shrink::shrink(self, failure)
    }

    fn cast(&self) -> Cast {
        let customs = self.kinds.iter().filter(|kind| kind.is_custom()).count();
        Cast {
            processes: self.programs.len(),
            kinds: self.kinds.len(),
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

    /// Runs a plan to its end.
    pub(crate) fn run_plan(&self, plan: &[Step]) -> Result<Report, Box<Failure>> {
        Driver::new(self).run(plan)
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let programs: Vec<&str> = self.programs.iter().map(|(name, _)| &**name).collect();
        f.debug_struct("Simulation")
            .field("seed", &self.seed)
            .field("programs", &programs)
            .field("chaos", &self.chaos)
            .finish_non_exhaustive()
    }
}
