//! What travels with a key through the queue.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change};
use lariat_core::{Cause, Causes};
use lariat_queue::{LaneId, Lanes};
use tokio::time::Instant;

/// Why a key is queued, and what is left of an object that was deleted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payload {
    pub(crate) causes: Causes,
    /// The deletion that came last. Rare, so boxed.
    deletion: Option<Box<Deletion>>,
}

/// A deletion, for as long as some handler has not handled it.
#[derive(Debug, Clone)]
struct Deletion {
    /// The last state of the object.
    last: Arc<CachedObject>,
    /// Counts the deletions of the kind.
    number: u64,
    /// Who has not handled it.
    lanes: Lanes,
}

impl Payload {
    /// Makes what travels with a change for some lanes; `number` counts deletions in their order.
    pub(crate) fn of(
        change: &Change,
        cause: Cause,
        lanes: &Lanes,
        number: impl FnOnce() -> u64,
    ) -> Self {
        let deletion = match change {
            Change::Deleted { last } => Some(Box::new(Deletion {
                last: Arc::clone(last),
                number: number(),
                lanes: lanes.clone(),
            })),
            _ => None,
        };
        Self {
            causes: cause.into(),
            deletion,
        }
    }

    /// Returns the last state of the object whose deletion a lane has not handled.
    pub(crate) fn deleted(&self, lane: LaneId) -> Option<&Arc<CachedObject>> {
        let deletion = self.deletion.as_ref()?;
        deletion.lanes.contains(lane).then_some(&deletion.last)
    }

    /// Returns whether somebody has not handled a deletion.
    pub(crate) fn has_deletion(&self) -> bool {
        self.deletion.is_some()
    }

    /// Returns why the key is handed out now; that a handler asked to be called later is no reason.
    pub(crate) fn causes_by_now(&self) -> Causes {
        let mut causes = self.causes.iter();
        match causes.any(|cause| matches!(cause, Cause::Requeued { .. })) {
            true => self.causes.due_at(Instant::now().into_std()),
            false => self.causes.clone(),
        }
    }

    /// Returns what a lane that failed needs to try again.
    pub(crate) fn for_retry(&self, lane: LaneId, cause: Cause) -> Self {
        let mut payload = self.for_lane(lane);
        payload.causes.push(cause);
        payload
    }

    /// Returns what one of the lanes needs to be called later.
    pub(crate) fn for_lane(&self, lane: LaneId) -> Self {
        let causes = self.causes_by_now();
        let deletion = self.deletion.as_deref();
        let mine = deletion.filter(|deletion| deletion.lanes.contains(lane));
        let deletion = mine.map(|deletion| {
            Box::new(Deletion {
                lanes: lane.into(),
                ..deletion.clone()
            })
        });
        Self { causes, deletion }
    }
}

impl lariat_queue::Payload for Payload {
    fn merge(&mut self, later: Self) {
        self.causes.extend(later.causes);
        let Some(theirs) = later.deletion else {
            return;
        };
        match &mut self.deletion {
            // The same deletion, by way of two handlers that failed.
            Some(mine) if mine.number == theirs.number => mine.lanes.merge(&theirs.lanes),
            Some(mine) if mine.number > theirs.number => {}
            // Of two objects that were deleted under one name, the last one is told.
            Some(mine) => {
                let earlier = std::mem::replace(mine, theirs);
                mine.lanes.merge(&earlier.lanes);
            }
            mine => *mine = Some(theirs),
        }
    }
}

impl From<Cause> for Payload {
    fn from(cause: Cause) -> Self {
        Self {
            causes: cause.into(),
            deletion: None,
        }
    }
}
