//! Logs the progress of a stop.

use std::time::Duration;

use tokio::time::{self, Instant};

use super::run::FactoryRun;
use crate::error::{NAMED, keys};

/// Logs how many keys a stop still has to process, and for which calls it waits.
pub(super) struct StopLog<'a> {
    run: &'a FactoryRun,
    grace: Duration,
    began: Instant,
    /// The number of keys that were left when the stop began.
    keys: usize,
}

/// The delay before the first progress line.
const FIRST: Duration = Duration::from_secs(2);

/// The interval between progress lines.
const PERIOD: Duration = Duration::from_secs(5);

impl<'a> StopLog<'a> {
    pub(super) fn new(run: &'a FactoryRun, grace: Duration) -> Self {
        let stop_log = Self {
            run,
            grace,
            began: Instant::now(),
            keys: left(run),
        };
        stop_log.log_begin();
        stop_log
    }

    /// Waits until every task has ended, and logs the progress.
    pub(super) async fn join(&self) {
        let mut next = Instant::now() + FIRST;
        loop {
            tokio::select! {
                biased;
                () = self.run.join() => return,
                () = time::sleep_until(next) => self.log_progress(),
            }
            next += PERIOD;
        }
    }

    fn log_begin(&self) {
        let keys = keys(self.keys);
        match self.keys {
            0 => tracing::info!("shutting down: nothing is left to do"),
            _ if self.grace == Duration::MAX => tracing::info!("shutting down: {keys} left"),
            _ => tracing::info!("shutting down: {keys} left, waiting up to {:?}", self.grace),
        }
    }

    fn log_progress(&self) {
        let (left, under_way) = (keys(left(self.run)), self.under_way());
        match self.grace.checked_sub(self.began.elapsed()) {
            Some(_) if self.grace == Duration::MAX => {
                tracing::info!(under_way, "still shutting down: {left} left");
            }
            Some(rest) => {
                let rest = rest.as_secs();
                tracing::info!(
                    under_way,
                    "still shutting down: {left} left, waiting {rest} s more"
                );
            }
            // The calls were dropped. A dropped call ends at its next await, so those that are left block their thread.
            None => tracing::warn!(
                under_way,
                "still shutting down: waiting for calls that block their thread"
            ),
        }
    }

    pub(super) fn log_end(&self) {
        let waiting: usize = self.run.left().map(|(core, _)| core.waiting()).sum();
        if waiting > 0 {
            let waiting = keys(waiting);
            tracing::info!("shut down: {waiting} wait for their handlers until the next start");
        } else if self.keys > 0 {
            let took = self.began.elapsed();
            tracing::info!("shut down: all keys that were due were processed in {took:.1?}");
        }
    }

    pub(super) fn log_abort(&self) {
        let (left, under_way) = (keys(left(self.run)), self.under_way());
        let grace = self.grace;
        tracing::warn!(
            under_way,
            "the grace period of {grace:?} is over: {left} left, dropping running calls"
        );
    }

    /// Returns the running calls as text, the longest first.
    fn under_way(&self) -> String {
        let mut doing: Vec<_> = self.run.left().collect();
        let all = doing.iter_mut().flat_map(|(core, doing)| {
            let gvk = core.gvk();
            doing.drain(..).map(move |doing| (gvk, doing))
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(_, doing)| std::cmp::Reverse(doing.lasts()));
        let more = all.len().saturating_sub(NAMED);
        let names = all.iter().take(NAMED).map(|(gvk, doing)| {
            let (key, lasts) = (&doing.key, doing.lasts());
            match &doing.handler {
                Some(handler) => format!("handler {handler} of {gvk} for {key}, since {lasts:.1?}"),
                None => format!("{gvk} {key}"),
            }
        });
        let mut names: Vec<String> = names.collect();
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names.join("; ")
    }
}

fn left(run: &FactoryRun) -> usize {
    run.left().map(|(core, _)| core.left_by_stop()).sum()
}
