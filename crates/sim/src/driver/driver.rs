//! The driver of a run.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::Gvk;

use super::steps::lift;
use crate::event::Event;
use crate::failure::Failure;
use crate::host::{Host, HostState};
use crate::lease_report::{LeaseReport, ReportPhase};
use crate::machine::Machine;
use crate::network::TrafficRecorder;
use crate::objects::Objects;
use crate::observer::{MetFault, Rest};
use crate::plan::{FaultKind, Names, PlanStep};
use crate::rate::Rate;
use crate::record::Recorder;
use crate::report::Report;
use crate::scenario::{Replicas, Scenario};
use crate::trace_filter::Kind;
use crate::world::World;
use crate::{logs, panics};

/// The longest turns: during activity, without activity, and at rest.
///
/// A message from one machine to another waits for the other's turn. At rest there are twenty minutes of little but
/// watches that are opened again, and turns are what they cost.
pub(super) const BUSY: Duration = Duration::from_millis(4);

const QUIET: Duration = Duration::from_millis(250);

const RESTING: Duration = Duration::from_secs(2);

/// The periods at which statuses of processes are sampled: during the plan and at rest.
const SAMPLES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// The number of times that tasks yield before the checks at rest.
const YIELDS: usize = 100;

/// For how long a program may take to end once it is asked to.
const ENDING: Duration = Duration::from_secs(180);

/// The time for which activities at the end of the rest may go on.
const SETTLING: Duration = Duration::from_secs(20);

pub(crate) struct Driver<'a> {
    pub(super) scenario: &'a Scenario,
    random: fastrand::Rng,
    pub(super) recorder: Recorder,
    pub(super) world: World,
    pub(super) processes: Vec<Host>,
    pub(super) now: Duration,
    /// The longest time of the next turn; it grows while nothing goes on.
    pub(super) turn: Duration,
    quiet: Duration,
    /// The ends of what limits a process's line for a time.
    pub(super) limits: Vec<(Duration, usize, FaultKind)>,
    steps: usize,
    pub(super) names: Names,
    /// The time of the next sample of statuses.
    next_sample: Duration,
    faults_ended: bool,
}

impl<'a> Driver<'a> {
    /// # Panics
    ///
    /// The cluster does not start, which it always does without a socket.
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        panics::begin();
        let mut random = fastrand::Rng::with_seed(scenario.seed);
        let replicas = scenario.replicas.as_ref();
        let recorder = Recorder::new((scenario.observers)());
        let kinds: Arc<[Objects]> = scenario.kinds.clone().into();
        let machine = Machine::new(
            &Arc::from("world"),
            random.u64(..),
            Duration::ZERO,
            &recorder,
        );
        let world = World::start(machine, random.u64(..), &recorder, &kinds);
        let traffic = TrafficRecorder::new(&recorder);
        let programs = scenario.programs.iter();
        let processes = programs
            .enumerate()
            .map(|(at, (name, program))| {
                let host = Host::new(name, program, random.u64(..), &traffic);
                let Some(replicas) = replicas else {
                    return host;
                };
                host.link_state.lock().lingers = true;
                host.rate(replicas.rates.get(at).copied().unwrap_or(Rate::TRUE))
            })
            .collect();
        Self {
            scenario,
            recorder,
            world: world.expect("a cluster without a socket starts"),
            processes,
            random,
            now: Duration::ZERO,
            turn: BUSY,
            quiet: QUIET,
            limits: Vec::new(),
            steps: 0,
            names: scenario.names(),
            next_sample: Duration::ZERO,
            faults_ended: false,
        }
    }

    pub(crate) fn run(mut self, plan: &[PlanStep]) -> Result<Report, Box<Failure>> {
        let _logging = logs::begin(&self.recorder, self.scenario.logs);
        // This also defines the custom kinds: the programs start on a cluster that has its kinds and first objects.
        self.world.heal();
        self.world.load(self.scenario.filled);
        // The custom kinds must be served before objects of them can be written.
        self.drive(Duration::from_secs(1));
        self.world.fill();
        self.drive(Duration::from_secs(2));
        for process in &mut self.processes {
            process.start(self.now, &mut self.world);
        }
        let began = self.now;
        for step in plan {
            self.drive(began + step.at);
            // Later steps would only add consequences of the first violation, and make shrinking slower.
            if self.recorder.has_failed() {
                break;
            }
            self.execute(step);
            self.steps += 1;
        }
        self.drive(began + self.scenario.chaos.duration);
        if !self.recorder.has_failed() {
            self.rest();
        }
        self.finish(plan)
    }

    /// Advances time; every machine has turns until then.
    fn drive(&mut self, until: Duration) {
        while self.now < until && !self.recorder.has_failed() {
            let before = self.progress();
            // Turns have random lengths, so that the interleavings of machines vary from seed to seed.
            let longest = u64::try_from(self.turn.as_millis()).unwrap_or(u64::MAX);
            let turn = Duration::from_millis(self.random.u64(1..=longest));
            let next = (self.now + turn).min(until);
            self.turn(next);
            let is_busy = self.progress() > before;
            self.sample();
            // Short turns while something happens, because a message waits for the turn of its receiver; long ones in
            // silence, because the number of turns is what virtual time costs.
            self.turn = if is_busy {
                BUSY
            } else {
                (self.turn * 2).min(self.quiet)
            };
        }
    }

    /// Counts progress: events, and turns of long bodies.
    fn progress(&self) -> u64 {
        let processes = self.processes.iter();
        self.recorder.events()
            + processes
                .map(|process| process.link_state.lock().waits)
                .sum::<u64>()
    }

    /// Samples the statuses of the processes periodically.
    fn sample(&mut self) {
        if self.now < self.next_sample {
            return;
        }
        self.next_sample = self.now + SAMPLES[usize::from(self.faults_ended)];
        self.processes.iter_mut().for_each(Host::sample);
    }

    /// Gives every machine one turn, in a random order.
    fn turn(&mut self, until: Duration) {
        // One index more than there are processes; it stands for the world.
        let mut order: Vec<usize> = (0..=self.processes.len()).collect();
        // A fixed order would give one process every race: the one that always runs first after the world.
        self.random.shuffle(&mut order);
        for at in order {
            match self.processes.get_mut(at) {
                Some(process) => process.turn(until, &mut self.world),
                None => self.world.turn(until),
            }
        }
        self.now = until;
        // A panic in a task does not reach the driver; it is found here, after the turn in which it happened.
        for panic in panics::take() {
            self.recorder.note(Event::Panicked(panic.clone()));
            self.recorder.found("no panic", panic);
        }
        let limits = &mut self.limits;
        let processes = &mut self.processes;
        limits.retain(|(end, process, what)| {
            let is_over = *end <= until;
            if is_over {
                lift(&mut processes[*process].link_state.lock(), *what);
            }
            !is_over
        });
        for (fault, process) in self.world.fired() {
            self.met(MetFault::Cluster(fault), Some(process));
        }
    }

    /// Ends all faults, waits for rest, and runs the checks at rest.
    fn rest(&mut self) {
        self.recorder.say("all faults end");
        // Renewals of leases go on, and turns are the latency of their answers.
        if self.scenario.replicas.is_none() {
            self.quiet = RESTING;
        }
        self.faults_ended = true;
        // Faults first, then limits, then processes: one that is started here must not meet a fault that outlived the
        // plan.
        self.world.heal();
        for (_, process, what) in std::mem::take(&mut self.limits) {
            lift(&mut self.processes[process].link_state.lock(), what);
        }
        for process in &mut self.processes {
            process.recover(self.now, &mut self.world);
        }
        let end = self.now + self.scenario.chaos.settle;
        if let Some(Replicas { settles, .. }) = self.scenario.replicas {
            // Pings notice a connection that hangs; there are none here, and a cache takes minutes.
            self.world.cluster().cut_watches();
            self.drive(self.now + settles);
            self.report_leases(ReportPhase::Held);
            self.drive(end.saturating_sub(Duration::from_secs(60)));
            self.report_leases(ReportPhase::LastMinute);
        }
        self.drive(end);
        self.settle();
        if self.scenario.replicas.is_some() {
            self.report_leases(ReportPhase::Rest);
        }
        if self.recorder.has_failed() {
            return;
        }
        self.look();
        if self.recorder.has_failed() {
            return;
        }
        for process in &mut self.processes {
            // An orderly end of each process belongs to the run: stops must end too, and leave nothing behind.
            process.terminate(Duration::MAX);
        }
        let end = self.now + ENDING;
        while self.now < end
            && self.processes.iter().any(Host::is_alive)
            && !self.recorder.has_failed()
        {
            self.drive(self.now + Duration::from_secs(1));
        }
        for process in &mut self.processes {
            process.look_at_end(self.now);
        }
    }

    /// Reports which keys and leases all processes hold.
    fn report_leases(&self, phase: ReportPhase) {
        let members = self.processes.iter().filter_map(Host::member).collect();
        let report = LeaseReport { phase, members };
        self.recorder.note(Event::LeasesReported(Arc::new(report)));
    }

    /// Runs on until the calls that came due at the end of the rest have ended.
    ///
    /// A resync of all objects may, for example.
    fn settle(&mut self) {
        let latest = self.now + SETTLING;
        while self.turn < self.quiet && self.now < latest && !self.recorder.has_failed() {
            self.drive(self.now + Duration::from_secs(1));
        }
    }

    /// Shows every living process to the observer, and the cluster to the user's checks.
    fn look(&mut self) {
        let served: Vec<Gvk> = self
            .scenario
            .kinds
            .iter()
            .map(|kind| kind.gvk().clone())
            .collect();
        for process in &mut self.processes {
            let name = Arc::clone(&process.name);
            let HostState::Running(incarnation) = &mut process.state else {
                self.recorder
                    .found("processes live", format!("{name} does not run at rest"));
                continue;
            };
            let factories = incarnation.process.factories();
            let (controllers, caches) = incarnation.machine.run(async {
                // What became due at this very moment is done first.
                for _ in 0..YIELDS {
                    tokio::task::yield_now().await;
                }
                let controllers = factories.iter().flat_map(|each| each.status());
                let caches = factories.iter().flat_map(|each| each.caches().status());
                (controllers.collect::<Vec<_>>(), caches.collect::<Vec<_>>())
            });
            let remembered = incarnation
                .machine
                .run(async { incarnation.process.table_sizes() });
            let rest = Rest {
                now: self.now,
                served: &served,
                incarnation: incarnation.process.id(),
                factories: &factories,
                remembered: &remembered,
                controllers: &controllers,
                caches: &caches,
            };
            let found = self.recorder.show(|observer| observer.at_rest(&rest));
            for (check, what) in found {
                self.recorder.found(check, format!("{name}: {what}"));
            }
        }
        for (name, check) in &self.scenario.checks {
            if let Err(what) = check(self.world.cluster()) {
                self.recorder
                    .found("the user's check", format!("{name}: {what}"));
            }
        }
    }

    fn finish(self, plan: &[PlanStep]) -> Result<Report, Box<Failure>> {
        // Before the processes are dropped below.
        let requests = self.processes.iter().map(Host::requests).sum();
        // What the processes leave behind may still report.
        let processes = self.processes;
        self.recorder.end(|| drop(processes));
        let (calls, commits) = self.recorder.counts();
        let (trace, violations) = self.recorder.finish();
        panics::end();
        if violations.is_empty() {
            return Ok(Report {
                seed: self.scenario.seed,
                steps: self.steps,
                calls,
                requests,
                commits,
                lasted: self.now,
                trace,
            });
        }
        Err(Box::new(Failure {
            seed: self.scenario.seed,
            violations,
            plan: plan.to_vec(),
            steps_before: plan.len(),
            names: self.names,
            kinds: self.scenario.kinds.iter().map(Kind::of).collect(),
            trace,
        }))
    }
}
