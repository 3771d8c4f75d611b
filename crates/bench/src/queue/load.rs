//! What queues are given to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time;

use crate::meter;

pub(crate) type Key = Arc<str>;

/// Producers and workers of the cases that have several.
pub(crate) const TASKS: usize = 4;

/// Delays are spread over this time.
const DELAYS: Duration = Duration::from_millis(100);

/// Delayed adds a second where they are paced.
pub(super) const PACE: usize = 18_000;

/// Delayed adds, and when their keys came.
pub(crate) struct Delayed {
    begun: Instant,
    /// How long after the other two adds follow, if they are paced.
    every: Option<Duration>,
    pub(super) adds: Vec<(Key, Duration)>,
    /// When each key was to come, and when it came, in nanoseconds since the beginning.
    times: Vec<(AtomicU64, AtomicU64)>,
}

impl Delayed {
    pub(super) fn new(n: usize, rate: Option<usize>) -> Self {
        // Knuth's multiplicative hash: the delays are spread evenly, in an order that looks random and is the same
        // each time.
        let delays = (0..).map(|at: u32| DELAYS * (at.wrapping_mul(2_654_435_761) >> 16) / 65_536);
        Self {
            begun: meter::now(),
            every: rate.map(|rate| Duration::from_secs(1).div_f64(rate as f64)),
            adds: keys(n).into_iter().zip(delays).collect(),
            times: (0..n).map(|_| Default::default()).collect(),
        }
    }

    /// Adds all keys, at a pace if there is one; a delay counts from its add.
    pub(super) async fn feed(&self, mut add: impl FnMut(Key, Duration)) {
        let mut next = time::Instant::now();
        for ((key, delay), (due, _)) in self.adds.iter().zip(&self.times) {
            if let Some(every) = self.every {
                // The timer of the runtime knows only milliseconds: adds within one are made together.
                if next > time::Instant::now() {
                    time::sleep_until(next).await;
                }
                // Counted from the beginning, so that a late add does not delay all that follow.
                next += every;
            }
            // Before the add, as the key may come at once on another thread.
            due.store(self.nanos(*delay), Ordering::Relaxed);
            add(Key::clone(key), *delay);
        }
    }

    pub(super) fn came(&self, key: &Key) {
        let number = key
            .rsplit('-')
            .next()
            .and_then(|number| number.parse::<usize>().ok());
        let (_, came) = &self.times[number.expect("keys end with their number")];
        came.store(self.nanos(Duration::ZERO), Ordering::Relaxed);
    }

    fn nanos(&self, after: Duration) -> u64 {
        (meter::now() - self.begun + after).as_nanos() as u64
    }

    pub(super) fn lateness(&self) -> Vec<Duration> {
        let late = |(due, came): &(AtomicU64, AtomicU64)| {
            let (due, came) = (due.load(Ordering::Relaxed), came.load(Ordering::Relaxed));
            assert!(came > 0, "every key came");
            Duration::from_nanos(came.saturating_sub(due))
        };
        self.times.iter().map(late).collect()
    }
}

pub(crate) fn one_thread() -> Runtime {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without I/O can be made")
}

pub(crate) fn two_threads() -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build();
    runtime.expect("a runtime without I/O can be made")
}

/// Returns which keys a producer adds: its share of `n` adds, over all keys in turn.
pub(crate) fn share(
    keys: &Arc<Vec<Key>>,
    n: usize,
    producer: usize,
) -> impl Iterator<Item = Key> + use<> {
    let keys = Arc::clone(keys);
    (producer..n)
        .step_by(TASKS)
        .map(move |at| Key::clone(&keys[at % keys.len()]))
}

/// Makes keys as a cluster has them.
pub(super) fn keys(n: usize) -> Vec<Key> {
    (0..n)
        .map(|number| format!("namespace-{}/pod-{number:07}", number % 100).into())
        .collect()
}
