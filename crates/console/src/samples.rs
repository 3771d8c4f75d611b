//! Samples of the last minutes, for sparklines and rates.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::ControllerStatus;
use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::api::Sample;
use crate::members::Members;

/// How often a sample is taken.
pub(crate) const PERIOD: Duration = Duration::from_secs(2);
/// The number of samples kept of a controller: five minutes.
const SAMPLES: usize = 150;
/// The number of totals kept of a handler, for the rates over a minute.
// One more than there are periods in a minute, as rates are differences of totals.
const TOTALS: usize = 31;

/// The samples of all controllers.
#[derive(Default)]
pub(crate) struct Samples(Mutex<HashMap<Controller, Taken>>);

/// A context id and a kind.
type Controller = (Arc<str>, Gvk);

/// The samples of a controller.
#[derive(Default)]
struct Taken {
    samples: VecDeque<Sample>,
    /// The last totals by handler; the empty name is for removed handlers.
    handlers: HashMap<Arc<str>, VecDeque<Totals>>,
    /// The totals of all handlers at the last sample, removed handlers included.
    counted: Option<(u64, u64)>,
}

/// The calls and failures of a handler up to one moment.
#[derive(Debug, Clone, Copy)]
struct Totals {
    at: Instant,
    calls: u64,
    failures: u64,
}

/// Calls and failures per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rates {
    pub(crate) calls: f64,
    pub(crate) failures: f64,
}

impl Samples {
    /// Takes a sample of every controller, and forgets controllers that have ended.
    pub(crate) fn take(&self, members: &Members) {
        let now = Instant::now();
        let mut seen = HashSet::new();
        for member in members.factories() {
            for status in member.factory.status() {
                let controller = (Arc::clone(&member.context), status.cache.gvk.clone());
                // Locked for each controller separately: reading a status takes locks of the controller.
                let mut all = self.0.lock();
                all.entry(controller.clone())
                    .or_default()
                    .take(&status, now);
                drop(all);
                seen.insert(controller);
            }
        }
        self.0
            .lock()
            .retain(|controller, _| seen.contains(controller));
    }

    /// Returns the samples of a controller, without leading empty ones.
    pub(crate) fn of(&self, context: &Arc<str>, gvk: &Gvk) -> Vec<Sample> {
        let all = self.0.lock();
        let taken = all.get(&(Arc::clone(context), gvk.clone()));
        let samples = taken.map(|taken| &taken.samples).into_iter().flatten();
        let samples = samples.copied();
        samples
            // A sparkline begins with the first activity, not with a flat line.
            .skip_while(|sample| *sample == Sample::default())
            .collect()
    }

    /// Returns the rates of a handler over the last minute.
    pub(crate) fn rates(&self, context: &Arc<str>, gvk: &Gvk, handler: &str) -> Rates {
        let all = self.0.lock();
        let taken = all.get(&(Arc::clone(context), gvk.clone()));
        let totals = taken.and_then(|taken| taken.handlers.get(handler));
        totals.map(rates).unwrap_or_default()
    }
}

impl Taken {
    fn take(&mut self, status: &ControllerStatus, now: Instant) {
        let gone = std::iter::once(&status.deregistered);
        let handlers: Vec<_> = status.handlers.iter().chain(gone).collect();
        let calls = handlers.iter().map(|handler| handler.calls).sum();
        let failures = handlers.iter().map(|handler| handler.failures).sum();
        let (calls, failures) = self.added(calls, failures);
        let sample = Sample {
            // The depth is the backlog, which includes keys in processing that were added again.
            ready: status.queue.depth(),
            processing: status.queue.processing,
            calls,
            failures,
        };
        self.handlers
            .retain(|name, _| handlers.iter().any(|handler| handler.name == *name));
        for handler in handlers {
            let totals = self.handlers.entry(Arc::clone(&handler.name)).or_default();
            // The oldest total is the start of the minute.
            if totals.len() == TOTALS {
                totals.pop_front();
            }
            totals.push_back(Totals {
                at: now,
                calls: handler.calls,
                failures: handler.failures,
            });
        }
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Returns the calls and failures since the last sample, from the totals.
    ///
    /// The sums are compared, not the counts of each handler: a handler that is deregistered moves its counts to those
    /// of removed handlers, which is no activity.
    fn added(&mut self, calls: u64, failures: u64) -> (u64, u64) {
        // At the first sample, the sums cover an unknown time, and would show as a peak.
        let last = self.counted.replace((calls, failures));
        let last = last.unwrap_or((calls, failures));
        (
            calls.saturating_sub(last.0),
            failures.saturating_sub(last.1),
        )
    }
}

fn rates(totals: &VecDeque<Totals>) -> Rates {
    let ends = totals.front().zip(totals.back());
    let Some((first, last)) = ends.filter(|(first, last)| first.at < last.at) else {
        return Rates::default();
    };
    let seconds = (last.at - first.at).as_secs_f64();
    let per_second = |first: u64, last: u64| last.saturating_sub(first) as f64 / seconds;
    Rates {
        calls: per_second(first.calls, last.calls),
        failures: per_second(first.failures, last.failures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_what_was_added_since_the_last_one() {
        let mut taken = Taken::default();
        assert_eq!(taken.added(900, 30), (0, 0), "of an unknown time");
        assert_eq!(taken.added(905, 31), (5, 1));
        assert_eq!(taken.added(905, 31), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn rates_are_those_between_the_first_and_the_last_total() {
        let totals = |values: &[(u64, u64)]| {
            let at = |seconds| Instant::now() + Duration::from_secs(seconds);
            let totals = (0..).step_by(2).zip(values);
            let totals: VecDeque<Totals> = totals
                .map(|(seconds, (calls, failures))| Totals {
                    at: at(seconds),
                    calls: *calls,
                    failures: *failures,
                })
                .collect();
            let Rates { calls, failures } = rates(&totals);
            (calls, failures)
        };
        assert_eq!(totals(&[]), (0.0, 0.0));
        assert_eq!(totals(&[(5, 1)]), (0.0, 0.0));
        assert_eq!(totals(&[(5, 1), (9, 1), (25, 5)]), (5.0, 1.0));
        assert_eq!(
            totals(&[(25, 5), (3, 0)]),
            (0.0, 0.0),
            "the handler is another one"
        );
    }
}
