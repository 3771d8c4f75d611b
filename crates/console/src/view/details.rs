//! A controller with its queued, failing, given up and slow keys.

use std::cmp::Reverse;

use lariat_controller::{CallRecord, FailingKey, GivenUpKey, RunRecord};
use lariat_core::Gvk;

use super::controllers::{controller as summary, hot_loop};
use super::queued::{in_progress, queued};
use crate::api;
use crate::api::KindRef;
use crate::members::Member;
use crate::samples::Samples;
use crate::text::{self, shown};

/// The maximum number of queued keys, of failing ones, and of those that were given up.
const KEYS: usize = 100;
/// The maximum number of slow runs.
const SLOWEST: usize = 20;

/// Returns a controller with its keys; none if it is not in use.
pub(crate) fn controller(
    member: &Member,
    gvk: &Gvk,
    samples: &Samples,
) -> Option<api::ControllerDetail> {
    let controller = member.controller(gvk)?;
    let status = controller.status()?;
    let kind = KindRef::new(&member.context, gvk);
    let queue = controller.queued(KEYS);
    let failing = controller.failing_keys(KEYS);
    let given_up = controller.given_up_keys(KEYS);
    let loops = status.hot_loops.iter();
    Some(api::ControllerDetail {
        controller: summary(member, &status, samples),
        in_progress: controller.in_progress().iter().map(in_progress).collect(),
        queued: queue.keys.iter().map(queued).collect(),
        queued_total: queue.total,
        slowest: slowest(controller.history()),
        failing_keys: failing.iter().map(failing_key).collect(),
        given_up_keys: given_up.iter().map(given_up_key).collect(),
        loops: loops.map(|it| hot_loop(&kind, it)).collect(),
    })
}

fn failing_key(failing: &FailingKey) -> api::Failing {
    api::Failing {
        key: failing.key.to_string(),
        handler: failing.handler.to_string(),
        failures: failing.failures,
        error: failing.error.as_deref().map(shown),
        retry_in: failing.retry_in.map(|it| it.as_secs_f64()),
    }
}

pub(super) fn given_up_key(given_up: &GivenUpKey) -> api::GivenUp {
    api::GivenUp {
        key: given_up.key.to_string(),
        handler: given_up.handler.to_string(),
        error: given_up.error.as_deref().map(shown),
        ago: given_up.ago.as_secs_f64(),
    }
}

fn slowest(mut history: Vec<RunRecord>) -> Vec<api::Slow> {
    history.sort_by_key(|run| Reverse(run.took));
    let slowest = history.iter().take(SLOWEST);
    slowest
        .map(|run| {
            // The handlers of a run are called one after the other, so one of them usually accounts for most of its
            // duration.
            let slow = run.calls.iter().max_by_key(|call: &&CallRecord| call.took);
            api::Slow {
                key: run.key.to_string(),
                handler: slow.map_or_else(String::new, |call| call.handler.to_string()),
                took: run.took.as_secs_f64(),
                at: text::ago(run.began.elapsed()),
            }
        })
        .collect()
}
