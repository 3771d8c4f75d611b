//! Controllers and caches of the overview.

use lariat_cache::{KindStatus, Reconnect};
use lariat_controller::{ControllerStatus, HandlerStatus, HotLoop};
use lariat_core::Gvk;
use lariat_queue::{Priority, QueueStats};

use crate::api;
use crate::api::KindRef;
use crate::members::{Member, Members};
use crate::samples::Samples;
use crate::text::{quantiles, shown};

/// Returns the controllers in use, by context and kind.
pub(crate) fn controllers(
    members: &Members,
    samples: &Samples,
) -> (Vec<api::Controller>, Vec<api::HotLoop>) {
    let (mut controllers, mut loops) = (Vec::new(), Vec::new());
    for member in members.factories() {
        for status in member.factory.status() {
            let kind = KindRef::new(&member.context, &status.cache.gvk);
            loops.extend(status.hot_loops.iter().map(|it| hot_loop(&kind, it)));
            controllers.push(controller(&member, &status, samples));
        }
    }
    // A stable order, so that rows of the page do not move.
    controllers.sort_by(|a, b| a.kind.cmp(&b.kind));
    (controllers, loops)
}

pub(super) fn controller(
    member: &Member,
    status: &ControllerStatus,
    samples: &Samples,
) -> api::Controller {
    let (context, gvk) = (&member.context, &status.cache.gvk);
    let handlers = status
        .handlers
        .iter()
        .map(|it| handler(member, gvk, it, samples));
    api::Controller {
        kind: KindRef::new(context, gvk),
        phase: status.cache.phase.to_string(),
        workers: status.workers,
        queue: queue(&status.queue),
        handlers: handlers.collect(),
        objects: status.cache.objects,
        hot_loops: status.hot_loops.len(),
        samples: samples.of(context, gvk),
    }
}

fn queue(stats: &QueueStats) -> api::Queue {
    // The order is part of the API.
    let priorities = [Priority::High, Priority::Normal, Priority::Low];
    api::Queue {
        ready: stats.depth(),
        by_priority: priorities.map(|priority| stats.depth_of(priority)),
        delayed: stats.delayed,
        processing: stats.processing,
        adds: stats.adds,
        retries: stats.retries,
        longest: stats.longest.as_secs_f64(),
        wait: quantiles(&stats.waits),
        work: quantiles(&stats.works),
    }
}

fn handler(member: &Member, gvk: &Gvk, status: &HandlerStatus, samples: &Samples) -> api::Handler {
    let rates = samples.rates(&member.context, gvk, &status.name);
    api::Handler {
        name: status.name.to_string(),
        blocked: blocked(status).map(str::to_owned),
        calls: status.calls,
        failures: status.failures,
        retries: status.retries,
        exhausted: status.exhausted,
        panics: status.panics,
        timeouts: status.timeouts,
        rate: rates.calls,
        failure_rate: rates.failures,
        time: quantiles(&status.times),
        lag: quantiles(&status.lags),
        waiting: status.waiting,
        failing: status.failing,
        given_up: status.given_up,
    }
}

fn blocked(status: &HandlerStatus) -> Option<&'static str> {
    if status.is_paused {
        return Some("paused");
    }
    status.waits_for_caches.then_some("waits for caches")
}

pub(super) fn hot_loop(kind: &KindRef, found: &HotLoop) -> api::HotLoop {
    api::HotLoop {
        kind: kind.clone(),
        key: found.key.to_string(),
        pattern: found.pattern.to_string(),
        handlers: found.handlers.iter().map(ToString::to_string).collect(),
        triggered_by: found.triggered_by.as_deref().map(shown),
        fields: found.fields.clone(),
        rounds: found.rounds,
    }
}

/// Returns the caches, by context and kind.
pub(crate) fn caches(members: &Members) -> Vec<api::Cache> {
    let mut caches = Vec::new();
    for member in members.factories() {
        let statuses = member.factory.caches().status().into_iter();
        caches.extend(statuses.map(|status| cache(&member.context, &status)));
    }
    caches.sort_by(|a, b| a.kind.cmp(&b.kind));
    caches
}

fn cache(context: &str, status: &KindStatus) -> api::Cache {
    let (loaded, total) = match status.phase {
        lariat_cache::Phase::Listing { loaded, total } => (Some(loaded), total),
        _ => (None, None),
    };
    let reconnects = Reconnect::ALL
        .into_iter()
        .map(|reason| (reason.as_str().to_owned(), status.reconnects(reason)));
    api::Cache {
        kind: KindRef::new(context, &status.gvk),
        phase: status.phase.to_string(),
        synced: status.phase == lariat_cache::Phase::Synced,
        stale: status.is_stale(),
        blind: status.blind.as_ref().map(|it| it.lasts.as_secs_f64()),
        loaded,
        total,
        objects: status.objects,
        bytes: status.bytes,
        policy: format!("{:?}", status.storage).to_lowercase(),
        decodes: status.decodes,
        resource_version: status.version.as_ref().map(ToString::to_string),
        loads: status.loads,
        watches: status.watches,
        reconnects: reconnects.filter(|(_, count)| *count > 0).collect(),
        unreadable: status.unreadable,
        last_received: status.last_received.map(|it| it.as_secs_f64()),
        last_error: status.last_error.as_deref().map(shown),
        retry_in: status.retry_in.map(|it| it.as_secs_f64()),
    }
}
