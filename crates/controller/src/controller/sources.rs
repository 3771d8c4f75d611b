//! The streams whose keys are enqueued for a handler:
//! [`HandlerOptions::enqueued_by`](crate::HandlerOptions::enqueued_by).

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use futures::stream::{BoxStream, StreamExt};
use lariat_core::{Gvk, ObjectKey};
use lariat_queue::LaneId;

use super::core::ControllerCore;
use crate::enqueue::Enqueue;
use crate::handler::KeySource;
use crate::lane::{Lane, LaneList};
use crate::panics;

/// How many keys of a stream are enqueued before it is another stream's turn.
const CHUNK: usize = 64;

/// The streams of the handlers of a kind, while it runs.
pub(super) struct Sources {
    gvk: Gvk,
    /// The handlers whose streams were created. A stream that has ended is not created again.
    begun: Vec<LaneId>,
    streams: Vec<Source>,
}

/// A stream of a handler.
struct Source {
    lane: LaneId,
    request: Enqueue,
    keys: BoxStream<'static, Vec<ObjectKey>>,
}

impl Sources {
    pub(super) fn new(gvk: &Gvk) -> Self {
        Self {
            gvk: gvk.clone(),
            begun: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Creates the streams of new handlers, and drops those of removed ones.
    pub(super) fn follow(&mut self, lanes: &LaneList) {
        let is_there = |id: LaneId| lanes.iter().any(|lane| lane.id() == id);
        self.begun.retain(|id| is_there(*id));
        self.streams.retain(|source| is_there(source.lane));
        for lane in lanes.iter() {
            if !self.begun.contains(&lane.id()) {
                self.begun.push(lane.id());
                let sources = lane.sources().iter();
                let begun = sources.filter_map(|source| self.begin(lane, source));
                let begun: Vec<Source> = begun.collect();
                self.streams.extend(begun);
            }
        }
    }

    /// Creates a stream; none if the user's function panics.
    fn begin(&self, lane: &Lane, source: &KeySource) -> Option<Source> {
        // Functions and streams are the user's. Their panics must not end the supervisor, which polls them.
        let made = catch_unwind(AssertUnwindSafe(|| source.begin()));
        let (kind, handler) = (self.gvk.clone(), lane.name().clone());
        let failed = move |panic: &(dyn std::any::Any + Send)| {
            let text = panics::message(panic);
            tracing::error!(%kind, %handler, "stream of keys panicked and was dropped: {text}");
        };
        let stream = made.inspect_err(|panic| failed(&**panic)).ok()?;
        let caught = AssertUnwindSafe(stream).catch_unwind();
        let keys = caught.filter_map(move |key| {
            let key = key.inspect_err(|panic| failed(&**panic)).ok();
            std::future::ready(key)
        });
        Some(Source {
            lane: lane.id(),
            request: source.request().clone(),
            // All keys that are ready at a time, so that a busy stream does not cost a turn of the supervisor per key.
            keys: keys.ready_chunks(CHUNK).boxed(),
        })
    }

    /// Enqueues the next keys of some stream; never resolves while no stream has any.
    pub(super) async fn enqueue_next(&mut self, core: &ControllerCore) {
        let (lane, request, keys) = poll_fn(|cx| self.poll_next(cx)).await;
        for key in &keys {
            core.enqueue_for(lane.into(), key, &request);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<(LaneId, Enqueue, Vec<ObjectKey>)> {
        let mut at = 0;
        while let Some(source) = self.streams.get_mut(at) {
            match source.keys.poll_next_unpin(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(None) => drop(self.streams.remove(at)),
                Poll::Ready(Some(keys)) => {
                    let next = (source.lane, source.request.clone(), keys);
                    // The other streams are polled first next time, so that a busy one does not starve them.
                    self.streams[at..].rotate_left(1);
                    return Poll::Ready(next);
                }
            }
        }
        Poll::Pending
    }
}
