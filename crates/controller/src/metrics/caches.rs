//! Metrics of caches and of their reflectors.

use std::fmt;

use lariat_cache::{KindStatus, Phase, Reconnect};

use super::output::Output;
use super::scrape::{Cached, Label};

pub(super) fn write(caches: &[Cached], out: &mut Output<'_>) -> fmt::Result {
    out.gauges(
        "lariat_cache_objects",
        "Objects in the cache.",
        each(caches, |kind| kind.objects),
    )?;
    out.gauges(
        "lariat_cache_bytes",
        "Bytes of the cached objects.",
        each(caches, |kind| kind.bytes),
    )?;
    out.counters(
        "lariat_cache_decodes_total",
        "Objects decoded from the cache.",
        each(caches, |kind| kind.decodes),
    )?;
    out.counters(
        "lariat_cache_hits_total",
        "Reads of the cache that needed no decode.",
        each(caches, |kind| kind.hits),
    )?;
    out.counters(
        "lariat_cache_lists_total",
        "Complete loads of the kind, by lists or watch lists.",
        each(caches, |kind| kind.loads),
    )?;
    reflectors(caches, out)
}

fn reflectors(caches: &[Cached], out: &mut Output<'_>) -> fmt::Result {
    out.counters(
        "lariat_reflector_lists_total",
        "Lists started.",
        each(caches, |kind| kind.lists),
    )?;
    out.counters(
        "lariat_reflector_watches_total",
        "Watches opened.",
        each(caches, |kind| kind.watches),
    )?;
    out.counters(
        "lariat_reflector_received_bytes_total",
        "Bytes of list and watch bodies, as received.",
        each(caches, |kind| kind.received),
    )?;
    reconnects(caches, out)?;
    let ages = caches.iter().filter_map(|cached| {
        let age = cached.status.last_received?;
        Some((labels(cached), age.as_secs_f64()))
    });
    out.gauges(
        "lariat_reflector_last_event_age_seconds",
        "Time since the API server last sent data.",
        ages,
    )?;
    out.gauges(
        "lariat_reflector_synced",
        "Whether the cache is synced.",
        each(caches, |kind| u32::from(kind.phase == Phase::Synced)),
    )?;
    out.gauges(
        "lariat_reflector_unwatched_seconds",
        "Time for which a synced cache has been without a watch.",
        each(caches, |kind| {
            kind.interrupted.unwrap_or_default().as_secs_f64()
        }),
    )?;
    out.gauges(
        "lariat_reflector_blind_seconds",
        "Time for which a kind that was cached has not been served.",
        each(caches, |kind| {
            let lasts = kind.blind.as_ref().map(|blind| blind.lasts);
            lasts.unwrap_or_default().as_secs_f64()
        }),
    )?;
    out.counters(
        "lariat_reflector_unreadable_total",
        "Objects and events that could not be read.",
        each(caches, |kind| kind.unreadable),
    )
}

fn reconnects(caches: &[Cached], out: &mut Output<'_>) -> fmt::Result {
    let by_reason = |cached| {
        Reconnect::ALL.map(|reason| {
            let [context, kind] = labels(cached);
            let labels = [context, kind, ("reason", reason.as_str())];
            (labels, cached.status.reconnects(reason))
        })
    };
    out.counters(
        "lariat_reflector_reconnects_total",
        "Reconnects, by the reason why the previous request ended.",
        caches.iter().flat_map(by_reason),
    )
}

fn each<'a, V>(
    caches: &'a [Cached],
    value: fn(&'a KindStatus) -> V,
) -> impl Iterator<Item = ([Label<'a>; 2], V)> {
    let caches = caches.iter();
    caches.map(move |cached| (labels(cached), value(&cached.status)))
}

fn labels(cached: &Cached) -> [Label<'_>; 2] {
    [("ctx", &cached.context), ("kind", &cached.name)]
}
