//! The streams of keys that enqueue for a handler.

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

/// How many keys of a stream are enqueued before the others have their turn.
const CHUNK: usize = 64;

/// The streams of the handlers of a kind, while it runs.
pub(super) struct Sources {
    gvk: Gvk,
    /// The handlers whose streams were begun. A stream that has ended is not begun again.
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

    /// Begins the streams of new handlers, and drops those of handlers that were removed.
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

    fn begin(&self, lane: &Lane, source: &KeySource) -> Option<Source> {
        // The functions and streams are the user's; their panics must not end the supervisor.
        let made = catch_unwind(AssertUnwindSafe(|| source.begin()));
        let (kind, handler) = (self.gvk.clone(), lane.name().clone());
        let failed = move |panic: &(dyn std::any::Any + Send)| {
            let text = panics::message(panic);
            tracing::error!(%kind, %handler, "the stream of keys panicked and has ended: {text}");
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
            keys: keys.ready_chunks(CHUNK).boxed(),
        })
    }

    /// Enqueues the next keys; never resolves if no stream has any.
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
                    // The others come first next time.
                    self.streams[at..].rotate_left(1);
                    return Poll::Ready(next);
                }
            }
        }
        Poll::Pending
    }
}
