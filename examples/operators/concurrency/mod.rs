//! Runs slow calls concurrently on several workers, but never two for one object.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cache::KindOptions;
use lariat::controller::Resync;
use lariat::prelude::*;
use lariat::{FactoryBuilder, Selection};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::{Paint, print_action};

#[cfg(test)]
mod tests;

/// The options of the controller.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// The maximum number of concurrent calls.
    pub concurrency: usize,
    /// The duration of a call.
    pub sleep: Duration,
    /// The resync period; `None` for never.
    pub interval: Option<Duration>,
    /// How many times a failed call is retried.
    pub retries: u32,
    /// Whether all calls fail.
    pub fails: bool,
    /// Whether each call is printed when it ends.
    pub prints: bool,
}

/// The original's defaults.
impl Default for Config {
    fn default() -> Self {
        Self {
            concurrency: 3,
            sleep: Duration::from_millis(25),
            interval: Some(Duration::from_secs(45)),
            retries: 3,
            fails: false,
            prints: false,
        }
    }
}

impl Config {
    /// Sets the workers for the pods of a namespace.
    pub fn configure(&self, builder: FactoryBuilder, namespace: &str) -> FactoryBuilder {
        let ours = Selection::all().in_namespaces([namespace]);
        let options = ControllerOptions::default()
            .workers(self.concurrency)
            .cache(KindOptions::default().selection(ours));
        builder.kind_options(Gvk::new("", "v1", "Pod"), options)
    }

    /// Registers a slow handler, and returns its counters.
    ///
    /// # Errors
    ///
    /// Pods have such a handler already.
    pub fn register(&self, factory: &SharedControllerFactory) -> Result<Gauge> {
        let (gauge, config) = (Gauge::default(), *self);
        let options = HandlerOptions::default()
            .max_retries(self.retries)
            .resync(self.interval.map_or(Resync::Never, Resync::Every));
        let counted = gauge.clone();
        let work = move |cx: Context<Pod>| {
            let counted = counted.clone();
            async move {
                let _call = counted.begin();
                sleep(config.sleep).await;
                if config.prints {
                    print_call(&cx, counted.counts());
                }
                if config.fails {
                    Err("it always fails".into())
                } else {
                    Ok(Outcome::done())
                }
            }
        };
        let pods = factory.for_object::<Pod>();
        pods.register_handler("work", options.handler(work))?;
        Ok(gauge)
    }
}

/// Prints a call that is about to end.
fn print_call(cx: &Context<Pod>, counts: Counts) {
    let (others, reason) = (counts.under_way - 1, cx.causes());
    let what = format_args!("handled beside {others} others: {reason}");
    print_action("Pod", cx.key().name(), Paint::Green, what);
}

/// The counters of calls; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Gauge {
    counts: Arc<Mutex<Counts>>,
    ended: Arc<Notify>,
}

/// Counts of calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Calls that have ended.
    pub calls: usize,
    /// Calls that are running.
    pub under_way: usize,
    /// The maximum number of calls that ran at the same time.
    pub at_once: usize,
    first: Option<Instant>,
    last: Option<Instant>,
}

/// A running call; dropping it ends the call.
struct Call(Gauge);

impl Gauge {
    fn begin(&self) -> Call {
        let mut counts = self.counts.lock();
        counts.under_way += 1;
        counts.at_once = counts.at_once.max(counts.under_way);
        counts.first.get_or_insert_with(Instant::now);
        Call(self.clone())
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.counts.lock()
    }

    /// Waits until this many calls have ended, and returns the counts.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn reaches(&self, calls: usize) -> Counts {
        loop {
            let ended = self.ended.notified();
            let counts = self.counts();
            if counts.calls >= calls {
                return counts;
            }
            ended.await;
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut counts = self.0.counts.lock();
        counts.under_way -= 1;
        counts.calls += 1;
        counts.last = Some(Instant::now());
        drop(counts);
        self.0.ended.notify_one();
    }
}

impl Counts {
    /// Returns the time from the beginning of the first call to the end of the last.
    #[must_use]
    pub fn took(&self) -> Duration {
        let times = self.first.zip(self.last);
        times.map_or(Duration::ZERO, |(first, last)| last - first)
    }
}
