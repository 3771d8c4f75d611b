//! A controller with its keys.

use std::cmp::Reverse;

use lariat_controller::{CallRecord, RunRecord};
use lariat_core::Gvk;

use super::controllers::{controller as summary, hot_loop};
use crate::api;
use crate::api::KindRef;
use crate::members::Member;
use crate::samples::Samples;
use crate::text;

/// The maximum number of slow runs.
const SLOWEST: usize = 20;

/// Returns a controller with its keys; none if it is not in use.
pub(crate) fn controller(
    member: &Member,
    gvk: &Gvk,
    samples: &Samples,
) -> Option<api::ControllerDetail> {
    let mut statuses = member.factory.status().into_iter();
    let status = statuses.find(|status| status.cache.gvk == *gvk)?;
    let kind = KindRef::new(&member.context, gvk);
    let history = member.factory.for_kind(gvk.clone()).history();
    Some(api::ControllerDetail {
        controller: summary(member, &status, samples),
        in_progress: Vec::new(),
        queued: Vec::new(),
        queued_total: status.queue.depth() + status.queue.delayed,
        slowest: slowest(history),
        failing_keys: Vec::new(),
        loops: status
            .hot_loops
            .iter()
            .map(|it| hot_loop(&kind, it))
            .collect(),
    })
}

fn slowest(mut history: Vec<RunRecord>) -> Vec<api::Slow> {
    history.sort_by_key(|run| Reverse(run.took));
    let slowest = history.iter().take(SLOWEST);
    slowest
        .map(|run| {
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
