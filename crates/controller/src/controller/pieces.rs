//! Adds many keys to a queue, and sums up sizes.

use lariat_core::ObjectKey;
use lariat_queue::Add;

use crate::payload::{Payload, Queue};

/// How many keys are added under one lock when all objects are enqueued.
const REPLAY_CHUNK: usize = 256;

/// Adds many keys in pieces, so that workers can take the queue's lock in between.
pub(super) fn add_in_pieces(queue: &Queue, adds: impl Iterator<Item = (ObjectKey, Add<Payload>)>) {
    let mut adds = adds.peekable();
    while adds.peek().is_some() {
        queue.add_all(adds.by_ref().take(REPLAY_CHUNK));
    }
}

/// Sums up entries and bounds.
pub(super) fn sum(sizes: impl Iterator<Item = (usize, usize)>) -> (usize, usize) {
    sizes.fold((0, 0), |(entries, bound), (more, most)| {
        (entries + more, bound + most)
    })
}
