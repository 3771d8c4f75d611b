//! Tests of polling sources.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_controller::{CallOutcome, HandlerError, HandlerOptions, Outcome};
use lariat_operator::{Poll, Polled, Reconcile, ReconcilerRegistration};
use parking_lot::Mutex;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, key, settle};
use crate::reconciling::Log;

/// Something outside the cluster, which has a value for each Widget.
#[derive(Clone, Default)]
struct Outside {
    values: Arc<Mutex<HashMap<String, &'static str>>>,
    polls: Log,
}

impl Outside {
    fn set(&self, name: &str, value: &'static str) {
        self.values.lock().insert(name.to_owned(), value);
    }

    async fn poll(self, widget: Arc<Widget>) -> Result<&'static str, HandlerError> {
        let name = widget.metadata.name.clone().unwrap_or_default();
        self.polls.add(&name);
        let value = self.values.lock().get(&name).copied();
        match value {
            Some("down") => Err(HandlerError::from("it is down")),
            Some("hangs") => std::future::pending().await,
            Some("panics") => panic!("it panics"),
            Some("ignored") => Err(HandlerError::ignore("no address yet")),
            value => Ok(value.unwrap_or("nothing")),
        }
    }

    /// A source whose period is the size of the Widget, in minutes.
    fn source(&self) -> Poll<Widget, &'static str> {
        let outside = self.clone();
        let minutes = |widget: &Widget| match u64::try_from(widget.spec.size) {
            Ok(size) => Some(Duration::from_secs(60 * size)),
            Err(_) => None,
        };
        Poll::with_periods("level", minutes, move |widget| outside.clone().poll(widget))
    }
}

/// Registers a reconciler that fails for good, which is nothing to its source.
fn register(bench: &Bench, source: Poll<Widget, &'static str>) -> (Log, ReconcilerRegistration) {
    let log = Log::default();
    let (seen, values): (Log, Polled<&str>) = (log.clone(), source.values());
    let reconciler = bench.operator.reconciler("levels", &bench.widgets);
    let registered = reconciler
        .polls(source)
        .register(move |cx: Reconcile<Widget>| {
            let level = values.get(cx.key());
            let level = level.map_or("unknown", |level| *level);
            seen.add(format!("{} {level}", cx.key().name()));
            async { Err(HandlerError::terminal("never")) }
        });
    (log, registered.expect("registered"))
}

/// A reconciler that has seen the Widget `a`, whose value is polled.
struct Polling {
    bench: Bench,
    outside: Outside,
    values: Polled<&'static str>,
    log: Log,
    _registration: ReconcilerRegistration,
}

impl Polling {
    async fn start(value: &'static str) -> Self {
        let bench = Bench::new().await;
        let outside = Outside::default();
        outside.set("a", value);
        let source = outside.source();
        let values = source.values();
        let (log, registration) = register(&bench, source);
        bench.start().await;
        bench.create("a", 1).await;
        settle().await;
        Self {
            bench,
            outside,
            values,
            log,
            _registration: registration,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_object_is_polled_with_its_own_period_and_reconciled_when_the_value_changes() {
    let bench = Bench::new().await;
    let outside = Outside::default();
    outside.set("a", "low");
    let (log, _registration) = register(&bench, outside.source());
    bench.start().await;
    for (name, minutes) in [("a", 1), ("b", 5), ("c", 0), ("d", -1)] {
        bench.create(name, minutes).await;
    }
    settle().await;
    let mut seen = log.take();
    seen.dedup();
    seen.sort();
    assert_eq!(seen, ["a low", "b nothing", "c unknown", "d unknown"]);
    outside.polls.take();

    time::sleep(600 * SECOND).await;
    let polls = outside.polls.take();
    let count = |name: &str| polls.iter().filter(|each| *each == name).count();
    assert_eq!(
        (count("a"), count("b"), count("c"), count("d")),
        (10, 2, 0, 0)
    );
    assert_eq!(log.take(), [""; 0], "nothing changed");
    outside.set("a", "high");
    time::sleep(60 * SECOND).await;
    assert_eq!(log.take(), ["a high"]);
    let run = bench.widgets.history_of(&key("a")).pop().expect("a run");
    assert!(run.causes.to_string().contains("(level changed)"), "{run}");
    // A change of the spec is polled at once, and may change the period.
    bench.resize("b", 1).await;
    settle().await;
    outside.polls.take();
    time::sleep(600 * SECOND).await;
    let polls = outside.polls.take();
    assert_eq!(polls.iter().filter(|each| *each == "b").count(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_fails_keeps_the_value_and_is_repeated_within_the_period() {
    for trouble in ["down", "hangs", "panics"] {
        let Polling {
            bench,
            outside,
            values,
            log,
            ..
        } = &Polling::start("low").await;
        outside.set("a", trouble);
        time::sleep(3600 * SECOND).await;
        log.take();
        assert_eq!(values.get(&key("a")).as_deref(), Some(&"low"), "{trouble}");
        outside.polls.take();
        time::sleep(900 * SECOND).await;
        // A call that hangs is ended after 30 seconds, and the next begins at most a minute later.
        let polls = outside.polls.take().len();
        assert!((9..=16).contains(&polls), "{trouble}: {polls} polls");
        let run = bench.widgets.history_of(&key("a")).pop().expect("a run");
        assert_eq!(run.calls[0].handler.as_ref(), "levels-level");
        assert!(run.calls[0].outcome.is_failure(), "{trouble}: {run}");
        outside.set("a", "high");
        time::sleep(91 * SECOND).await;
        assert_eq!(log.take(), ["a high"], "{trouble}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_ignored_is_repeated_after_the_period() {
    let Polling { outside, log, .. } = &Polling::start("ignored").await;
    outside.polls.take();
    time::sleep(600 * SECOND).await;
    assert_eq!(outside.polls.take().len(), 10);
    log.take();
    outside.set("a", "high");
    time::sleep(61 * SECOND).await;
    assert_eq!(log.take(), ["a high"]);
}

#[tokio::test(start_paused = true)]
async fn the_value_of_a_former_object_is_not_that_of_its_successor() {
    let Polling {
        bench,
        outside,
        values,
        ..
    } = &Polling::start("low").await;
    assert_eq!(values.get(&key("a")).as_deref(), Some(&"low"));
    // Deleted and created before the deletion is processed.
    outside.set("a", "down");
    bench.delete("a").await;
    bench.create("a", 1).await;
    settle().await;
    assert!(values.get(&key("a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn values_end_with_their_objects() {
    let Polling {
        bench,
        outside,
        values,
        log,
        ..
    } = &Polling::start("low").await;
    assert!(values.get(&key("a")).is_some());
    bench.delete("a").await;
    settle().await;
    assert!(values.get(&key("a")).is_none());
    log.take();
    outside.polls.take();
    time::sleep(600 * SECOND).await;
    assert_eq!(outside.polls.take(), [""; 0]);
    // Another object of the name starts over, although its value is the same.
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(log.take().last().map(String::as_str), Some("a low"));
}

#[tokio::test(start_paused = true)]
async fn a_source_ends_with_its_reconciler() {
    let bench = Bench::new().await;
    let outside = Outside::default();
    let (_, registration) = register(&bench, outside.source());
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    registration.deregister().await;
    outside.polls.take();
    time::sleep(600 * SECOND).await;
    assert_eq!(outside.polls.take(), [""; 0]);
    // Its name is free again.
    let (log, _registration) = register(&bench, outside.source());
    settle().await;
    assert_eq!(log.take().last().map(String::as_str), Some("a nothing"));
}

#[tokio::test(start_paused = true)]
async fn two_sources_of_one_name_are_refused_and_nothing_is_left() {
    let bench = Bench::new().await;
    let outside = Outside::default();
    let reconciler = bench.operator.reconciler("levels", &bench.widgets);
    let reconciler = reconciler.polls(outside.source()).polls(outside.source());
    let refused = reconciler.register(|_| async { Ok(Outcome::done()) });
    let error = refused.expect_err("refused").to_string();
    assert!(error.contains("levels-level"), "{error}");
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(outside.polls.take(), [""; 0]);
    let (log, _registration) = register(&bench, outside.source());
    settle().await;
    assert!(!log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_source_has_options_of_its_own() {
    let bench = Bench::new().await;
    let outside = Outside::default();
    outside.set("a", "hangs");
    for (options, limit) in [
        (HandlerOptions::default().timeout(5 * SECOND), 5 * SECOND),
        // The default stays if the options set no limit.
        (HandlerOptions::default().concurrency(4), 30 * SECOND),
    ] {
        let (_, registration) = register(&bench, outside.source().options(options));
        if bench.get("a").await.is_none() {
            bench.start().await;
            bench.create("a", 1).await;
        }
        // A call of the former source may end first.
        time::sleep(limit + 10 * SECOND).await;
        let runs = bench.widgets.history_of(&key("a"));
        let calls = runs.iter().flat_map(|run| &run.calls);
        let mut limits = calls.filter(|call| call.outcome == CallOutcome::TimedOut);
        assert_eq!(limits.next_back().map(|call| call.took), Some(limit));
        registration.deregister().await;
    }
}
