//! Metrics of the work queues, under the names of client-go.

use std::fmt;

use lariat_queue::{Priority, QueueStats};

use super::output::Output;
use super::scrape::{Kind, Label};

pub(super) fn write(kinds: &[Kind], out: &mut Output<'_>) -> fmt::Result {
    depths(kinds, out)?;
    out.counters(
        "workqueue_adds_total",
        "Keys that became due; adds that merge count once.",
        each(kinds, |queue| queue.adds),
    )?;
    out.histograms(
        "workqueue_queue_duration_seconds",
        "Time from a key becoming due to its processing.",
        each(kinds, |queue| &queue.waits),
    )?;
    out.histograms(
        "workqueue_work_duration_seconds",
        "Time for processing a key.",
        each(kinds, |queue| &queue.works),
    )?;
    out.gauges(
        "workqueue_unfinished_work_seconds",
        "Sum of the times for which keys have been in processing.",
        each(kinds, |queue| queue.unfinished.as_secs_f64()),
    )?;
    out.gauges(
        "workqueue_longest_running_processor_seconds",
        "Longest time for which a key has been in processing.",
        each(kinds, |queue| queue.longest.as_secs_f64()),
    )?;
    out.counters(
        "workqueue_retries_total",
        "Failures of handlers after which a retry was scheduled.",
        each(kinds, |queue| queue.retries),
    )
}

/// Writes the depths by priority; their sum is client-go's depth.
fn depths(kinds: &[Kind], out: &mut Output<'_>) -> fmt::Result {
    let by_priority = |kind| {
        Priority::ALL.map(|priority| {
            let [context, name, controller] = labels(kind);
            let labels = [context, name, controller, ("priority", priority.as_str())];
            (labels, kind.status.queue.depth_of(priority))
        })
    };
    out.gauges(
        "workqueue_depth",
        "Keys that are due: queued, or due again while being processed.",
        kinds.iter().flat_map(by_priority),
    )
}

fn each<'a, V>(
    kinds: &'a [Kind],
    value: fn(&'a QueueStats) -> V,
) -> impl Iterator<Item = ([Label<'a>; 3], V)> {
    let queues = kinds.iter();
    queues.map(move |kind| (labels(kind), value(&kind.status.queue)))
}

fn labels(kind: &Kind) -> [Label<'_>; 3] {
    [
        ("ctx", &kind.context),
        ("name", &kind.name),
        ("controller", &kind.name),
    ]
}
