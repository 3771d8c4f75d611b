//! Queued keys, and running calls.

use lariat_controller::{InProgress, QueuedKey, QueuedLane};

use crate::api;

pub(super) fn in_progress(call: &InProgress) -> api::InProgress {
    api::InProgress {
        key: call.key.to_string(),
        handler: call.handler.as_deref().map(str::to_owned),
        lasts: call.lasts.as_secs_f64(),
    }
}

pub(super) fn queued(queued: &QueuedKey) -> api::QueuedKey {
    // A key without a state is not in the queue, and waits for handlers outside it.
    let state = queued.state.as_str();
    api::QueuedKey {
        key: queued.key.to_string(),
        state: state.to_owned(),
        priority: queued.priority.as_str().to_owned(),
        due_for: queued.due_for.as_secs_f64(),
        lanes: queued.lanes.iter().map(lane).collect(),
    }
}

fn lane(lane: &QueuedLane) -> api::QueuedLane {
    api::QueuedLane {
        handler: lane.handler.as_deref().unwrap_or("*").to_owned(),
        due_in: lane.due_in.as_secs_f64(),
        failures: lane.failures,
        waits_for: lane.waits_for.map(|what| what.as_str().to_owned()),
    }
}
