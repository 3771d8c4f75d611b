//! The metrics of lasso, under the names of lasso.

use std::fmt;

use super::output::Output;
use super::scrape::{Cached, Kind, Label, Scrape, handlers};
use crate::status::HandlerStatus;

pub(super) fn write(scrape: &Scrape, out: &mut Output<'_>) -> fmt::Result {
    let kinds = &scrape.kinds;
    // A gauge, because the encoder would append `_total` to the name of a counter.
    out.gauges(
        "lasso_controller_total_handler_execution",
        "Handler calls; a counter despite its type.",
        by_failure(kinds, |handler, failed| {
            if failed {
                handler.failures
            } else {
                handler.calls - handler.failures
            }
        }),
    )?;
    out.histograms(
        "lasso_controller_reconcile_time_seconds",
        "Duration of handler calls.",
        by_failure(kinds, HandlerStatus::times_of),
    )?;
    out.gauges(
        "lasso_controller_total_cached_object",
        "Objects in the cache.",
        scrape.caches.iter().map(cached),
    )
}

fn by_failure<'a, V>(
    kinds: &'a [Kind],
    value: fn(&'a HandlerStatus, bool) -> V,
) -> impl Iterator<Item = ([Label<'a>; 4], V)> {
    handlers(kinds).flat_map(move |(kind, handler)| {
        [(false, "false"), (true, "true")].map(|(failed, text)| {
            let labels = [
                ("ctx", &*kind.context),
                ("controller_name", &kind.name),
                ("handler_name", &handler.name),
                ("has_error", text),
            ];
            (labels, value(handler, failed))
        })
    })
}

fn cached(cached: &Cached) -> ([Label<'_>; 4], usize) {
    let gvk = &cached.status.gvk;
    let labels = [
        ("ctx", &*cached.context),
        ("group", gvk.group()),
        ("version", gvk.version()),
        ("kind", gvk.kind()),
    ];
    (labels, cached.status.objects)
}
