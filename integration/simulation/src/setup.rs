//! The setup of the replicas of a trial, for the program and for the checkers.

use std::time::Duration;

use lariat_core::Gvk;
use lariat_sim::internals::Rate;

/// The annotation in which a handler leaves the mark of its write.
pub(crate) const WRITER: &str = "sim.dev/writer";

/// The time until the caches of a process are filled after the last fault.
const CACHES: Duration = Duration::from_secs(60);

/// The setup that the replicas of a trial have in common.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    /// Whether the replicas form a ring; otherwise they elect a leader.
    pub(crate) is_sharded: bool,
    pub(crate) times: Times,
    pub(crate) workers: usize,
    /// The number of handlers of each kind.
    pub(crate) handlers: usize,
    /// Whether handlers fail for some keys until all faults have ended.
    pub(crate) fails: bool,
    /// The rate of the clock of each replica.
    pub(crate) rates: Vec<Rate>,
}

/// The times of the leases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) duration: Duration,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
    pub(crate) drain: Duration,
}

impl Setup {
    /// Returns the rate of a replica.
    pub(crate) fn rate(&self, process: &str) -> Rate {
        let number = process
            .rsplit('-')
            .next()
            .and_then(|it| it.parse::<usize>().ok());
        let rate = number.and_then(|number| self.rates.get(number));
        rate.copied().unwrap_or(Rate::TRUE)
    }

    /// Returns the time after the last fault by which everything has a holder.
    ///
    /// It is two lease durations, the drain timeout, and the time in which caches are filled of a process that is
    /// started by then, or that has waited for an answer that never comes.
    pub(crate) fn settles(&self) -> Duration {
        2 * self.times.duration + self.times.drain + CACHES
    }

    /// Returns the least time a write may be in flight after its call was dropped.
    ///
    /// By the clocks of the program that is the lease duration less the renew deadline. A process whose clock is fast
    /// waits less for the lease of one whose clock is slow.
    pub(crate) fn margin(&self) -> Duration {
        let fastest = self.rates.iter().max_by_key(|rate| rate.0);
        let slowest = self.rates.iter().min_by_key(|rate| rate.0);
        let (fastest, slowest) = (fastest.copied(), slowest.copied());
        let (fastest, slowest) = (fastest.unwrap_or(Rate::TRUE), slowest.unwrap_or(Rate::TRUE));
        let Times {
            duration,
            renew_deadline,
            ..
        } = self.times;
        // The worst pair: the fastest clock decides when the next holder starts, the slowest when the old one gives
        // up.
        let waits = fastest.of_run(duration);
        waits.saturating_sub(slowest.of_run(renew_deadline))
    }
}

/// The kinds of the trial, in the order of the simulation's list.
///
/// Objects of the second kind may be controlled by objects of the first.
pub(crate) fn kinds() -> [Gvk; 2] {
    [
        Gvk::new("", "v1", "ConfigMap"),
        Gvk::new("", "v1", "Secret"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    pub(crate) fn setup(rates: Vec<Rate>) -> Setup {
        let times = Times {
            duration: 15 * SECOND,
            renew_deadline: 10 * SECOND,
            retry_period: 2 * SECOND,
            drain: 30 * SECOND,
        };
        Setup {
            seed: 0,
            is_sharded: true,
            times,
            workers: 2,
            handlers: 1,
            fails: false,
            rates,
        }
    }

    #[test]
    fn the_margin_is_smaller_where_clocks_differ() {
        assert_eq!(setup(vec![Rate::TRUE; 2]).margin(), 5 * SECOND);
        let differ = setup(vec![Rate::TRUE, Rate(1250)]);
        assert_eq!(differ.margin(), 2 * SECOND);
        assert_eq!(differ.rate("replica-1"), Rate(1250));
    }
}
