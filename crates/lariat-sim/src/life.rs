//! A process over its lives: started, paused, killed, and asked to end.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::activity::{Act, Reached, Sample};
use crate::actors::LifeId;
use crate::coverage::{Doing, States};
use crate::event::Event;
use crate::machine::Machine;
use crate::network::{Line, Link, Traffic};
use crate::plan::Command;
use crate::process::Process;
use crate::program::{Ending, Program};
use crate::rate::Rate;
use crate::survey::Member;
use crate::world::World;

/// A process, alive or not.
pub(crate) struct Body {
    pub(crate) name: Arc<str>,
    program: Program,
    random: fastrand::Rng,
    traffic: Traffic,
    rate: Rate,
    pub(crate) line: Arc<Mutex<Line>>,
    pub(crate) state: BodyState,
    lives: u32,
    /// Whether programs behave from now on.
    is_calm: bool,
    requests: u64,
}

pub(crate) enum BodyState {
    /// It has not been started, or has ended for good.
    Over,
    Running(Box<Life>),
    /// It runs again at a time.
    Paused(Box<Life>, Duration),
    /// It is started at a time.
    Down(Duration),
}

/// The state of a living process.
pub(crate) struct Life {
    pub(crate) machine: Machine,
    pub(crate) process: Process,
    commands: mpsc::UnboundedSender<Command>,
    main: JoinHandle<Ending>,
    /// How long it is down after an orderly end.
    down: Option<Duration>,
}

impl Body {
    pub(crate) fn new(name: &Arc<str>, program: &Program, seed: u64, traffic: &Traffic) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        Self {
            name: Arc::clone(name),
            program: Arc::clone(program),
            line: Line::new(random.u64(..)),
            random,
            traffic: traffic.clone(),
            rate: Rate::TRUE,
            state: BodyState::Over,
            lives: 0,
            is_calm: false,
            requests: 0,
        }
    }

    /// Lets the clocks of the process run at a rate of their own.
    pub(crate) fn rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// How its requests name it.
    pub(crate) fn agent(&self) -> String {
        format!("{}/", self.name)
    }

    pub(crate) fn requests(&self) -> u64 {
        let life = match &self.state {
            BodyState::Running(life) | BodyState::Paused(life, _) => life.process.requests(),
            _ => 0,
        };
        self.requests + life
    }

    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.state, BodyState::Running(_) | BodyState::Paused(..))
    }

    /// Returns what the process is doing; none while there is no process.
    pub(crate) fn states(&self) -> Option<States> {
        let (life, is_paused) = match &self.state {
            BodyState::Running(life) => (life, false),
            BodyState::Paused(life, _) => (life, true),
            BodyState::Over | BodyState::Down(_) => return None,
        };
        let process = &life.process;
        let mut states = States::default();
        states.set(Doing::Paused, is_paused);
        states.set(Doing::SecondLife, process.life() > 0);
        states.set(Doing::Stopping, process.is_terminated());
        states.set(Doing::Writing, process.is_writing());
        let factories = process.factories();
        Some(life.machine.look(|| {
            let caches: Vec<_> = (factories.iter())
                .flat_map(|each| each.caches().status())
                .collect();
            let controllers: Vec<_> = factories.iter().flat_map(|each| each.status()).collect();
            states.of(&caches, &controllers)
        }))
    }

    /// Returns the process's own view of its lease; `None` while it is down.
    pub(crate) fn member(&self) -> Option<Member> {
        let (BodyState::Running(life) | BodyState::Paused(life, _)) = &self.state else {
            return None;
        };
        let factory = life.process.factories().into_iter().next()?;
        life.machine.look(|| {
            Some(Member {
                life: life.process.id().clone(),
                leads: factory.leadership().is_some_and(|it| it.leads()),
                share: factory.shards().map(|shards| shards.share()),
            })
        })
    }

    /// Begins a life.
    pub(crate) fn start(&mut self, at: Duration, world: &mut World) {
        let life = LifeId {
            process: Arc::clone(&self.name),
            number: self.lives,
        };
        self.lives += 1;
        // Each life has a seed of its own, from the generator of the process: a restart does not repeat the delays of
        // the life before.
        let seed = self.random.u64(..);
        // A new runtime for each life: the tasks and timers of the last one are gone.
        let mut machine =
            Machine::new(&self.name, seed, at, &self.traffic.recorder).rate(self.rate);
        let (link, carrying) = Link::new(
            &format!("{}{}", self.agent(), life.number),
            world.cluster().service(),
            &self.line,
            &self.traffic,
        );
        // The cluster handles requests on its own runtime, by its own clock.
        drop(world.machine.spawn(carrying));
        let (commands, asked) = mpsc::unbounded_channel();
        let recorder = &self.traffic.recorder;
        let process = Process::new(life.clone(), link, asked, recorder);
        if self.is_calm {
            process.calm();
        }
        recorder.note(Event::LifeBegan(life));
        let running = (self.program)(process.clone());
        let main = machine.spawn(running);
        // A first turn of no length, so that the program has begun before anything can happen to it.
        machine.run(async {});
        self.state = BodyState::Running(Box::new(Life {
            machine,
            process,
            commands,
            main,
            down: None,
        }));
    }

    /// Runs the process up to a time, if it runs.
    pub(crate) fn turn(&mut self, until: Duration, world: &mut World) {
        match std::mem::replace(&mut self.state, BodyState::Over) {
            BodyState::Running(mut life) => {
                life.machine.turn(until);
                self.state = BodyState::Running(life);
                self.look_at_main(until);
            }
            BodyState::Paused(mut life, resumes) if resumes <= until => {
                self.traffic
                    .recorder
                    .say(format!("{} runs again", self.name));
                life.process.acts(Act::Resumed);
                // A process stopped by a signal finds its clock advanced when it continues, and its timers due at once.
                life.machine.skip(until);
                self.state = BodyState::Running(life);
            }
            BodyState::Down(starts) if starts <= until => self.start(until, world),
            state => self.state = state,
        }
    }

    /// Notices that the program has returned.
    fn look_at_main(&mut self, now: Duration) {
        let BodyState::Running(life) = &mut self.state else {
            return;
        };
        if !life.main.is_finished() {
            return;
        }
        let BodyState::Running(mut life) = std::mem::replace(&mut self.state, BodyState::Over)
        else {
            return;
        };
        let main = &mut life.main;
        let ending = life.machine.run(main);
        // The task has ended, so this takes its result without running anything else.
        let name = &self.name;
        let again = life.process.starts_again();
        match ending {
            // A program may return only if it was asked to end, or has lost its lease.
            Ok(Ok(())) if life.process.is_terminated() || again.is_some() => {}
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
        let down = life.down.or(again);
        if let Some(down) = down.filter(|down| *down < Duration::MAX) {
            self.state = BodyState::Down(now + down);
        }
        self.look_at_tasks(&mut life, now);
        self.bury(*life);
    }

    /// Looks for tasks that outlive their program.
    fn look_at_tasks(&self, life: &mut Life, now: Duration) {
        // A factory that is still referenced here would keep its tasks alive, and each would be reported.
        life.process.forget_factories();
        // Clients have tasks that end when their last handle is gone.
        life.machine.turn(now + Duration::from_secs(1));
        let left = life.machine.tasks();
        if left > 0 {
            let what = format!("{} has ended, {left} of its tasks have not", self.name);
            self.traffic.recorder.found("no task is left", what);
        }
    }

    fn bury(&mut self, life: Life) {
        let id = life.process.id().clone();
        self.requests += life.process.requests();
        life.process.forget_factories();
        // Before the runtime is dropped, whose tasks end in an order that differs from run to run.
        life.process.cut();
        life.machine.kill();
        self.traffic.recorder.note(Event::LifeEnded(id));
    }

    pub(crate) fn kill(&mut self, _now: Duration, starts: Duration) {
        match std::mem::replace(&mut self.state, BodyState::Down(starts)) {
            BodyState::Running(life) | BodyState::Paused(life, _) => self.bury(*life),
            // A process that has ended for good is not brought back by a kill.
            BodyState::Over => self.state = BodyState::Over,
            BodyState::Down(_) => {}
        }
    }

    /// Asks the program to end; it is started again after a time.
    pub(crate) fn terminate(&mut self, down: Duration) {
        match &mut self.state {
            BodyState::Running(life) | BodyState::Paused(life, _) => {
                life.down = Some(down);
                life.process.terminate();
            }
            // The end of the run: it must not be started again.
            BodyState::Down(_) if down == Duration::MAX => self.state = BodyState::Over,
            _ => {}
        }
    }

    pub(crate) fn pause(&mut self, until: Duration) {
        self.state = match std::mem::replace(&mut self.state, BodyState::Over) {
            BodyState::Running(life) => {
                life.process.acts(Act::Paused);
                BodyState::Paused(life, until)
            }
            state => state,
        };
    }

    /// Records the statuses of the process's controllers.
    pub(crate) fn sample(&mut self) {
        let BodyState::Running(life) = &mut self.state else {
            return;
        };
        let factories = life.process.factories();
        let (samples, caches) = life.machine.run(async {
            let statuses = factories.iter().flat_map(|each| each.status());
            let samples = statuses.map(|status| Sample::of(&status)).collect();
            let caches = factories
                .iter()
                .flat_map(|each| each.caches().status())
                .map(|status| Reached::of(&status))
                .collect();
            (samples, caches)
        });
        // Of a process that has shown no factory nothing is known.
        if !factories.is_empty() {
            life.process.has_cached(caches);
        }
        life.process.acts(Act::Sampled(samples));
    }

    /// Lets the wall clock jump.
    pub(crate) fn shift_clock(&mut self, seconds: i64) {
        if let BodyState::Running(life) | BodyState::Paused(life, _) = &mut self.state {
            life.machine.shift_clock(seconds);
        }
    }

    pub(crate) fn command(&mut self, command: Command) {
        if let BodyState::Running(life) | BodyState::Paused(life, _) = &self.state {
            // A program that takes no commands has closed the channel.
            life.commands.send(command).ok();
        }
    }

    /// Brings the process back to life, and asks it to behave.
    pub(crate) fn recover(&mut self, now: Duration, world: &mut World) {
        self.is_calm = true;
        match std::mem::replace(&mut self.state, BodyState::Over) {
            BodyState::Paused(life, _) => {
                // Its program learns of this in its next turn, when it runs again.
                life.process.calm();
                self.state = BodyState::Paused(life, now);
            }
            BodyState::Running(life) => {
                life.process.calm();
                self.state = BodyState::Running(life);
            }
            BodyState::Over | BodyState::Down(_) => self.start(now, world),
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
