//! A process over its incarnations: started, paused, killed, and asked to end.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::activity::{ActivityKind, CacheProgress, Sample};
use crate::actors::IncarnationId;
use crate::event::Event;
use crate::lease_report::Member;
use crate::machine::Machine;
use crate::network::{Link, LinkState, TrafficRecorder};
use crate::observer::LiveProcess;
use crate::opaque::Opaque;
use crate::process::Process;
use crate::program::{Ending, Program};
use crate::rate::Rate;
use crate::world::World;

/// A process, alive or not.
pub(crate) struct Host {
    pub(crate) name: Arc<str>,
    program: Program,
    random: fastrand::Rng,
    traffic: TrafficRecorder,
    rate: Rate,
    pub(crate) link_state: Arc<Mutex<LinkState>>,
    pub(crate) state: HostState,
    incarnations: u32,
    /// Whether programs behave from now on.
    faults_ended: bool,
    requests: u64,
}

pub(crate) enum HostState {
    /// It has not been started, or has ended for good.
    Over,
    Running(Box<RunningProcess>),
    /// It runs again at a time.
    Paused(Box<RunningProcess>, Duration),
    /// It is started at a time.
    Down(Duration),
}

/// The state of a living process.
pub(crate) struct RunningProcess {
    pub(crate) machine: Machine,
    pub(crate) process: Process,
    commands: mpsc::UnboundedSender<Opaque>,
    main: JoinHandle<Ending>,
    /// The time it is down after an orderly end.
    down: Option<Duration>,
}

impl Host {
    pub(crate) fn new(
        name: &Arc<str>,
        program: &Program,
        seed: u64,
        traffic: &TrafficRecorder,
    ) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            name: Arc::clone(name),
            program: Arc::clone(program),
            link_state: LinkState::new(random.u64(..)),
            random,
            traffic: traffic.clone(),
            rate: Rate::TRUE,
            state: HostState::Over,
            incarnations: 0,
            faults_ended: false,
            requests: 0,
        }
    }

    /// Sets the rate of the process's clocks.
    pub(crate) fn rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// Returns the `User-Agent` of its requests, without the incarnation.
    pub(crate) fn agent(&self) -> String {
        format!("{}/", self.name)
    }

    pub(crate) fn requests(&self) -> u64 {
        let incarnation = match &self.state {
            HostState::Running(incarnation) | HostState::Paused(incarnation, _) => {
                incarnation.process.requests()
            }
            _ => 0,
        };
        self.requests + incarnation
    }

    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, HostState::Running(_) | HostState::Paused(..))
    }

    /// Returns the state of the process; `None` while there is none.
    pub(crate) fn live(&self) -> Option<LiveProcess> {
        let (incarnation, is_paused) = match &self.state {
            HostState::Running(incarnation) => (incarnation, false),
            HostState::Paused(incarnation, _) => (incarnation, true),
            HostState::Over | HostState::Down(_) => return None,
        };
        let process = &incarnation.process;
        let factories = process.factories();
        let (caches, controllers) = incarnation.machine.look(|| {
            let caches = factories.iter().flat_map(|each| each.caches().status());
            let controllers = factories.iter().flat_map(|each| each.status());
            (caches.collect(), controllers.collect())
        });
        Some(LiveProcess {
            is_paused,
            is_restarted: process.incarnation() > 0,
            is_stopping: process.is_terminated(),
            is_writing: process.is_writing(),
            caches,
            controllers,
        })
    }

    /// Returns the process's own view of its lease; `None` while it is down.
    pub(crate) fn member(&self) -> Option<Member> {
        let (HostState::Running(incarnation) | HostState::Paused(incarnation, _)) = &self.state
        else {
            return None;
        };
        let factory = incarnation.process.factories().into_iter().next()?;
        incarnation.machine.look(|| {
            Some(Member {
                incarnation: incarnation.process.id().clone(),
                leads: factory.leadership().is_some_and(|it| it.leads()),
                share: factory.shards().map(|shards| shards.share()),
            })
        })
    }

    /// Begins an incarnation.
    pub(crate) fn start(&mut self, at: Duration, world: &mut World) {
        let incarnation = IncarnationId {
            process: Arc::clone(&self.name),
            number: self.incarnations,
        };
        self.incarnations += 1;
        // Each incarnation has a seed of its own, from the generator of the process: a restart does not repeat the
        // delays of the incarnation before.
        let seed = self.random.u64(..);
        // A new runtime for each incarnation: the tasks and timers of the last one are gone.
        let mut machine =
            Machine::new(&self.name, seed, at, &self.traffic.recorder).rate(self.rate);
        let (link, carrying) = Link::new(
            &format!("{}{}", self.agent(), incarnation.number),
            world.cluster().service(),
            &self.link_state,
            &self.traffic,
        );
        // The cluster handles requests on its own runtime, by its own clock.
        drop(world.machine.spawn(carrying));
        let (commands, asked) = mpsc::unbounded_channel();
        let recorder = &self.traffic.recorder;
        let process = Process::new(incarnation.clone(), link, asked, recorder);
        if self.faults_ended {
            process.note_faults_ended();
        }
        recorder.note(Event::IncarnationBegan(incarnation));
        let running = (self.program)(process.clone());
        let main = machine.spawn(running);
        // A first turn of no length, so that the program has begun before anything can happen to it.
        machine.run(async {});
        self.state = HostState::Running(Box::new(RunningProcess {
            machine,
            process,
            commands,
            main,
            down: None,
        }));
    }

    /// Runs the process up to a time, if it runs.
    pub(crate) fn turn(&mut self, until: Duration, world: &mut World) {
        match std::mem::replace(&mut self.state, HostState::Over) {
            HostState::Running(mut incarnation) => {
                incarnation.machine.turn(until);
                self.state = HostState::Running(incarnation);
                self.look_at_main(until);
            }
            HostState::Paused(mut incarnation, resumes) if resumes <= until => {
                self.traffic
                    .recorder
                    .say(format!("{} runs again", self.name));
                incarnation.process.acts(ActivityKind::Resumed);
                // A process stopped by a signal finds its clock advanced when it continues, and its timers due at once.
                incarnation.machine.skip(until);
                self.state = HostState::Running(incarnation);
            }
            HostState::Down(starts) if starts <= until => self.start(until, world),
            state => self.state = state,
        }
    }

    /// Notices that the program has returned.
    fn look_at_main(&mut self, now: Duration) {
        let HostState::Running(incarnation) = &mut self.state else {
            return;
        };
        if !incarnation.main.is_finished() {
            return;
        }
        let HostState::Running(mut incarnation) =
            std::mem::replace(&mut self.state, HostState::Over)
        else {
            return;
        };
        let main = &mut incarnation.main;
        let ending = incarnation.machine.run(main);
        // The task has ended, so this takes its result without running anything else.
        let name = &self.name;
        let again = incarnation.process.starts_again();
        match ending {
            // A program may return only if it was asked to end, or has lost its lease.
            Ok(Ok(())) if incarnation.process.is_terminated() || again.is_some() => {}
            Ok(Ok(())) => self
                .traffic
                .recorder
                .found("programs run", format!("{name} ended unasked")),
            Ok(Err(error)) => self
                .traffic
                .recorder
                .found("programs run", format!("{name}: {error}")),
            Err(error) => self
                .traffic
                .recorder
                .found("programs run", format!("{name}: {error}")),
        }
        let down = incarnation.down.or(again);
        if let Some(down) = down.filter(|down| *down < Duration::MAX) {
            self.state = HostState::Down(now + down);
        }
        self.look_at_tasks(&mut incarnation, now);
        self.clean_up(*incarnation);
    }

    /// Looks for tasks that outlive their program.
    fn look_at_tasks(&self, incarnation: &mut RunningProcess, now: Duration) {
        // A factory that is still referenced here would keep its tasks alive, and each would be reported.
        incarnation.process.forget_factories();
        // Clients have tasks that end when their last handle is gone.
        incarnation.machine.turn(now + Duration::from_secs(1));
        let left = incarnation.machine.tasks();
        if left > 0 {
            let what = format!("{} has ended, {left} of its tasks have not", self.name);
            self.traffic.recorder.found("no task is left", what);
        }
    }

    fn clean_up(&mut self, incarnation: RunningProcess) {
        let id = incarnation.process.id().clone();
        self.requests += incarnation.process.requests();
        incarnation.process.forget_factories();
        // Before the runtime is dropped, whose tasks end in an order that differs from run to run.
        incarnation.process.cut();
        incarnation.machine.kill();
        self.traffic.recorder.note(Event::IncarnationEnded(id));
    }

    pub(crate) fn kill(&mut self, _now: Duration, starts: Duration) {
        match std::mem::replace(&mut self.state, HostState::Down(starts)) {
            HostState::Running(incarnation) | HostState::Paused(incarnation, _) => {
                self.clean_up(*incarnation)
            }
            // A process that has ended for good is not brought back by a kill.
            HostState::Over => self.state = HostState::Over,
            HostState::Down(_) => {}
        }
    }

    /// Asks the program to end; it is started again after a time.
    pub(crate) fn terminate(&mut self, down: Duration) {
        match &mut self.state {
            HostState::Running(incarnation) | HostState::Paused(incarnation, _) => {
                incarnation.down = Some(down);
                incarnation.process.terminate();
            }
            // The end of the run: it must not be started again.
            HostState::Down(_) if down == Duration::MAX => self.state = HostState::Over,
            _ => {}
        }
    }

    pub(crate) fn pause(&mut self, until: Duration) {
        self.state = match std::mem::replace(&mut self.state, HostState::Over) {
            HostState::Running(incarnation) => {
                incarnation.process.acts(ActivityKind::Paused);
                HostState::Paused(incarnation, until)
            }
            state => state,
        };
    }

    /// Records the statuses of the process's controllers.
    pub(crate) fn sample(&mut self) {
        let HostState::Running(incarnation) = &mut self.state else {
            return;
        };
        let factories = incarnation.process.factories();
        let (samples, caches) = incarnation.machine.run(async {
            let statuses = factories.iter().flat_map(|each| each.status());
            let samples = statuses.map(|status| Sample::of(&status)).collect();
            let caches = factories
                .iter()
                .flat_map(|each| each.caches().status())
                .map(|status| CacheProgress::of(&status))
                .collect();
            (samples, caches)
        });
        // Of a process that has shown no factory nothing is known.
        if !factories.is_empty() {
            incarnation.process.has_cached(caches);
        }
        incarnation.process.acts(ActivityKind::Sampled(samples));
    }

    /// Shifts the wall clock.
    pub(crate) fn shift_clock(&mut self, seconds: i64) {
        if let HostState::Running(incarnation) | HostState::Paused(incarnation, _) = &mut self.state
        {
            incarnation.machine.shift_clock(seconds);
        }
    }

    pub(crate) fn command(&mut self, command: Opaque) {
        if let HostState::Running(incarnation) | HostState::Paused(incarnation, _) = &self.state {
            // A program that takes no commands has closed the channel.
            incarnation.commands.send(command).ok();
        }
    }

    /// Brings the process back up, and asks it to behave.
    pub(crate) fn recover(&mut self, now: Duration, world: &mut World) {
        self.faults_ended = true;
        match std::mem::replace(&mut self.state, HostState::Over) {
            HostState::Paused(incarnation, _) => {
                // Its program learns of this in its next turn, when it runs again.
                incarnation.process.note_faults_ended();
                self.state = HostState::Paused(incarnation, now);
            }
            HostState::Running(incarnation) => {
                incarnation.process.note_faults_ended();
                self.state = HostState::Running(incarnation);
            }
            HostState::Over | HostState::Down(_) => self.start(now, world),
        }
    }

    /// Reports a program that was asked to end and did not.
    pub(crate) fn look_at_end(&mut self, _now: Duration) {
        if self.is_alive() {
            let what = format!("{} did not end when it was asked to", self.name);
            self.traffic.recorder.found("programs end", what);
        }
    }
}
