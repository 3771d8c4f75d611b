//! Calls of all handlers of a kind together, under the names of controller-runtime.

use std::fmt;

use lariat_queue::Histogram;

use super::output::Output;
use super::scrape::{Kind, Label};
use crate::status::HandlerStatus;
use crate::totals::CallOutcome;

pub(super) fn write(kinds: &[Kind], out: &mut Output<'_>) -> fmt::Result {
    results(kinds, out)?;
    out.counters(
        "controller_runtime_reconcile_errors_total",
        "Handler calls that failed, for any reason.",
        each(kinds, |kind| sum(kind, |handler| handler.failures)),
    )?;
    out.counters(
        "controller_runtime_terminal_reconcile_errors_total",
        "Handler calls that failed with a terminal error.",
        each(kinds, |kind| {
            sum(kind, |handler| handler.ended(CallOutcome::Terminal))
        }),
    )?;
    out.counters(
        "controller_runtime_reconcile_panics_total",
        "Handler calls that panicked.",
        each(kinds, |kind| sum(kind, |handler| handler.panics)),
    )?;
    out.counters(
        "controller_runtime_reconcile_timeouts_total",
        "Handler calls that timed out.",
        each(kinds, |kind| sum(kind, |handler| handler.timeouts)),
    )?;
    out.histograms(
        "controller_runtime_reconcile_time_seconds",
        "Duration of handler calls.",
        each(kinds, times),
    )?;
    out.gauges(
        "controller_runtime_max_concurrent_reconciles",
        "Workers; zero while the controller does not run.",
        each(kinds, |kind| kind.status.workers.unwrap_or(0)),
    )?;
    out.gauges(
        "controller_runtime_active_workers",
        "Workers that are processing a key.",
        each(kinds, |kind| kind.status.queue.processing),
    )
}

type Count = fn(&HandlerStatus) -> u64;

/// The results of controller-runtime, as sums of the ways a call can end.
const RESULTS: [(&str, Count); 4] = [
    ("success", |handler| {
        handler.ended(CallOutcome::Done) + handler.ended(CallOutcome::Ignored)
    }),
    ("error", |handler| handler.failures),
    ("requeue", |handler| handler.immediate_requeues),
    ("requeue_after", |handler| {
        handler.ended(CallOutcome::Requeued) - handler.immediate_requeues
    }),
];

fn results(kinds: &[Kind], out: &mut Output<'_>) -> fmt::Result {
    let by_result = |kind| {
        RESULTS.map(|(result, count)| {
            let [context, controller] = labels(kind);
            ([context, controller, ("result", result)], sum(kind, count))
        })
    };
    out.counters(
        "controller_runtime_reconcile_total",
        "Handler calls by result.",
        kinds.iter().flat_map(by_result),
    )
}

/// Iterates over the registered handlers, and the sum of removed ones.
///
/// Without the removed ones a counter would decrease, which Prometheus takes for a restart.
fn all(kind: &Kind) -> impl Iterator<Item = &HandlerStatus> {
    kind.status
        .handlers
        .iter()
        .chain([&kind.status.deregistered])
}

fn sum(kind: &Kind, count: impl Fn(&HandlerStatus) -> u64) -> u64 {
    all(kind).map(count).sum()
}

fn times(kind: &Kind) -> Histogram {
    let mut times = Histogram::default();
    all(kind).for_each(|handler| times.merge(&handler.times));
    times
}

fn each<'a, V>(
    kinds: &'a [Kind],
    value: fn(&'a Kind) -> V,
) -> impl Iterator<Item = ([Label<'a>; 2], V)> {
    kinds.iter().map(move |kind| (labels(kind), value(kind)))
}

fn labels(kind: &Kind) -> [Label<'_>; 2] {
    [("ctx", &kind.context), ("controller", &kind.name)]
}
