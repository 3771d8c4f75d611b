//! A runtime with a clock of its own, which runs when it has its turn.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lariat_core::clock;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{self, Instant};

use crate::polls::Polls;
use crate::rate::Rate;
use crate::record::Recorder;

/// The wall clock of every machine at time zero, since 1970: 2026-01-01.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// One tokio runtime of the thread: a process, or the world.
///
/// Its time stands still between turns, and jumps from timer to timer within one.
pub(crate) struct Machine {
    name: Arc<str>,
    runtime: Runtime,
    /// Virtual time up to which it has run.
    at: Duration,
    /// The runtime's clock at its start, and when that was. Timers round up to milliseconds, so its clock may be ahead
    /// of `at` for a moment; turns are measured from here, so that this does not add up.
    origin: (Instant, Duration),
    random: fastrand::Rng,
    recorder: Recorder,
    /// By how many seconds the wall clock is off.
    shift: i64,
    rate: Rate,
    polls: Polls,
}

impl Machine {
    /// Starts a machine at a time of the run.
    ///
    /// # Panics
    ///
    /// The operating system gives no runtime.
    pub(crate) fn new(name: &Arc<str>, seed: u64, at: Duration, recorder: &Recorder) -> Self {
        let mut builder = Builder::new_current_thread();
        // Paused time jumps to the next timer when no task is ready: virtual time costs nothing, and never depends on
        // how fast the host is.
        builder.enable_time().start_paused(true);
        seed_scheduler(&mut builder, seed);
        let polls = Polls::of(&mut builder);
        let runtime = builder
            .build()
            .expect("a runtime without I/O needs no resources");
        // Read inside of the runtime: outside of it `Instant::now` is the real clock.
        let origin = (runtime.block_on(async { Instant::now() }), at);
        Self {
            name: Arc::clone(name),
            runtime,
            at,
            origin,
            random: fastrand::Rng::with_seed(seed),
            recorder: recorder.clone(),
            shift: 0,
            rate: Rate::TRUE,
            polls,
        }
    }

    /// Sets the rate of the machine's clocks.
    pub(crate) fn rate(self, rate: Rate) -> Self {
        Self { rate, ..self }
    }

    /// Runs all tasks and timers that are due up to a time.
    pub(crate) fn turn(&mut self, until: Duration) {
        // Only the past is skipped: a turn of no length still runs what is ready.
        if until < self.at {
            return;
        }
        // The turn is a sleep on the runtime: while it is pending, tokio runs ready tasks and jumps from timer to
        // timer, but never beyond `end`.
        let end = self.instant(until);
        self.run(async move { time::sleep_until(end).await });
        self.at = until;
    }

    /// Advances time without running tasks, as for a process stopped by a signal.
    pub(crate) fn skip(&mut self, until: Duration) {
        if until < self.at {
            return;
        }
        let end = self.instant(until);
        // `advance` moves the clock at once, while `sleep_until` would run each timer at its own time on the way.
        self.run(async move { time::advance(end.saturating_duration_since(Instant::now())).await });
        self.at = until;
    }

    /// Returns a time of the run as the runtime's clock shows it.
    fn instant(&self, at: Duration) -> Instant {
        self.origin.0 + self.rate.local(at.saturating_sub(self.origin.1))
    }

    /// Runs a future on the machine's runtime, and the tasks that become ready meanwhile.
    pub(crate) fn run<T>(&mut self, future: impl Future<Output = T>) -> T {
        // Libraries draw from the generator of the thread, which all machines share.
        // The seed is drawn in every turn, so that what other machines drew in between makes no difference.
        fastrand::seed(self.random.u64(..));
        let (recorder, name) = (self.recorder.clone(), Arc::clone(&self.name));
        let (wall, (origin, started)) = (self.wall(), self.origin);
        let rate = self.rate;
        let result = self.runtime.block_on(async move {
            let now = move || started + origin.elapsed();
            // Dropped before the turn ends: each machine has a wall clock of its own.
            let _simulated = clock::simulate(move || wall + now());
            // Events of this turn are stamped by this runtime's clock, converted to the time of the run, since clocks
            // of machines may run at different rates.
            recorder.begin_turn(&name, started + rate.of_run(origin.elapsed()), rate);
            future.await
        });
        // The hash makes two runs differ at the first turn in which tasks ran in another order, long before a line of
        // the trace does.
        self.recorder.end_turn(self.at, self.polls.hash());
        result
    }

    /// Reads the machine's state at its time.
    ///
    /// It runs no tasks and consumes no randomness.
    pub(crate) fn look<T>(&self, look: impl FnOnce() -> T) -> T {
        // In the runtime `Instant::now` is the clock of the machine; entering it runs no task.
        let _entered = self.runtime.enter();
        look()
    }

    /// The wall clock at time zero.
    fn wall(&self) -> SystemTime {
        let shift = Duration::from_secs(self.shift.unsigned_abs());
        let wall = SystemTime::UNIX_EPOCH + EPOCH;
        if self.shift < 0 {
            wall - shift
        } else {
            wall + shift
        }
    }

    /// Returns the time up to which it has run.
    pub(crate) fn at(&self) -> Duration {
        self.at
    }

    /// Starts a task.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.runtime.spawn(future)
    }

    /// Shifts the wall clock.
    pub(crate) fn shift_clock(&mut self, seconds: i64) {
        self.shift += seconds;
    }

    /// Returns how many tasks have not ended.
    pub(crate) fn tasks(&self) -> usize {
        self.runtime.metrics().num_alive_tasks()
    }

    /// Ends all tasks at once, as the kill of a process does.
    pub(crate) fn kill(self) {
        let Self {
            runtime,
            recorder,
            at,
            name: _,
            origin: _,
            random: _,
            shift: _,
            rate: _,
            polls,
        } = self;
        // The last polls count for the hash although the machine gets no further turn.
        recorder.end_turn(at, polls.hash());
        recorder.end(|| drop(runtime));
    }
}

/// Seeds tokio's random choices: the branch that `select!` polls first, the receiver that `watch` wakes first.
#[cfg(tokio_unstable)]
fn seed_scheduler(builder: &mut Builder, seed: u64) {
    builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
}

/// The seed of tokio's scheduler, with `--cfg tokio_unstable` only.
///
/// Without it some orders differ from run to run.
#[cfg(not(tokio_unstable))]
fn seed_scheduler(_: &mut Builder, _: u64) {}
