//! The cost of a run, as a table.

use std::time::Duration;

use lariat::ControllerStatus;
use lariat::cluster::Cluster;
use lariat_examples::{Paint, TextTable, paint, say};

/// Prints the counters of each kind and each handler.
pub(crate) fn print(kinds: &[ControllerStatus], cluster: Option<&Cluster>) {
    say("");
    let mut table = TextTable::new(&[
        "kind", "watches", "lists", "cached", "bytes", "queued", "dequeued", "wait p50", "wait p99",
    ]);
    for ControllerStatus { cache, queue, .. } in kinds {
        table.row([
            cache.gvk.to_string(),
            cache.watches.to_string(),
            cache.lists.to_string(),
            cache.objects.to_string(),
            bytes(cache.bytes),
            queue.adds.to_string(),
            queue.dequeued.to_string(),
            time(queue.waits.quantile(0.5)),
            time(queue.waits.quantile(0.99)),
        ]);
    }
    table.print();
    say("");
    let mut table = TextTable::new(&["handler", "of", "runs", "failures", "retries", "time"]);
    for kind in kinds {
        for handler in &kind.handlers {
            table.row([
                handler.name.to_string(),
                kind.cache.gvk.to_string(),
                handler.runs.to_string(),
                handler.failures.to_string(),
                handler.retries.to_string(),
                time(handler.busy),
            ]);
        }
    }
    table.print();
    if let Some(cluster) = cluster {
        let journal = cluster.journal();
        let seen = |verb| journal.count(verb, "pods") + journal.count(verb, "widgets");
        let watches = format!(
            "the API server saw {} watches for {} kinds and {} handlers",
            seen("watch"),
            kinds.len(),
            kinds.iter().map(|kind| kind.handlers.len()).sum::<usize>(),
        );
        say(format_args!("\n  {}", paint(Paint::Dim, watches, 0)));
    }
}

fn bytes(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Formats a time with two or three digits.
pub(crate) fn time(duration: Duration) -> String {
    match duration.as_micros() {
        0..1_000 => format!("{} µs", duration.as_micros()),
        1_000..1_000_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}
