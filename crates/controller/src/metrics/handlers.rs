//! Metrics of each handler, of blocked threads, and of hot loops.

use std::fmt;

use super::output::Output;
use super::scrape::{self, Kind, Label};
use crate::status::HandlerStatus;
use crate::totals::CallOutcome;

pub(super) fn write(kinds: &[Kind], out: &mut Output<'_>) -> fmt::Result {
    calls(kinds, out)?;
    out.histograms(
        "lariat_handler_time_seconds",
        "Duration of calls.",
        each(kinds, |handler| &handler.times),
    )?;
    out.histograms(
        "lariat_handler_lag_seconds",
        "Time from a change to the call for it.",
        each(kinds, |handler| &handler.lags),
    )?;
    out.counters(
        "lariat_handler_retries_total",
        "Calls that were retries.",
        each(kinds, |handler| handler.retries),
    )?;
    out.counters(
        "lariat_handler_exhausted_total",
        "Failures after which the retries were exhausted.",
        each(kinds, |handler| handler.exhausted),
    )?;
    let blocked = |kind| (of_kind(kind), kind.status.blocked);
    out.gauges(
        "lariat_blocked_threads",
        "Calls that have blocked a thread for longer than the limit.",
        kinds.iter().map(blocked),
    )?;
    out.gauges(
        "lariat_handler_failing_keys",
        "Keys that the handler fails for and is called again for.",
        each(kinds, |handler| handler.failing),
    )?;
    out.gauges(
        "lariat_handler_given_up_keys",
        "Keys whose last call failed and that the handler is not called for again.",
        each(kinds, |handler| handler.given_up),
    )?;
    let hot_loops = |kind| (of_kind(kind), kind.status.hot_loops.len());
    out.gauges(
        "lariat_hot_loops",
        "Keys in a hot loop.",
        kinds.iter().map(hot_loops),
    )
}

fn calls(kinds: &[Kind], out: &mut Output<'_>) -> fmt::Result {
    let by_result = scrape::handlers(kinds).flat_map(|(kind, handler)| {
        CallOutcome::ALL.iter().map(move |&ended| {
            let [context, name, handler_name] = labels(kind, handler);
            let labels = [context, name, handler_name, ("result", ended.as_str())];
            (labels, handler.ended(ended))
        })
    });
    out.counters("lariat_handler_calls_total", "Calls by result.", by_result)
}

fn each<'a, V>(
    kinds: &'a [Kind],
    value: fn(&'a HandlerStatus) -> V,
) -> impl Iterator<Item = ([Label<'a>; 3], V)> {
    scrape::handlers(kinds).map(move |(kind, handler)| (labels(kind, handler), value(handler)))
}

fn labels<'a>(kind: &'a Kind, handler: &'a HandlerStatus) -> [Label<'a>; 3] {
    let [context, name] = of_kind(kind);
    [context, name, ("handler", &handler.name)]
}

fn of_kind(kind: &Kind) -> [Label<'_>; 2] {
    [("ctx", &kind.context), ("kind", &kind.name)]
}
