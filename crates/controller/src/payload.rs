//! The payload of a queued key: its causes, and the deletions that handlers have to handle.
//!
//! The queue merges the payloads of adds for the same key. Causes merge into a bounded set. Deletions must not merge:
//! each deleted object may need its own cleanup. So they are kept in a list, each with the lanes that have not handled
//! it yet.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change};
use lariat_core::{Cause, Causes, ObjectKey};
use lariat_queue::{LaneId, Lanes, Work, WorkQueue};
use tokio::time::Instant;

/// The work queue of a kind.
pub(crate) type Queue = WorkQueue<ObjectKey, Payload>;

/// A key that a worker is processing.
pub(crate) type Taken = Work<ObjectKey, Payload>;

/// Why a key is queued, and the last states of deleted objects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payload {
    pub(crate) causes: Causes,
    /// The deletions that some handler has not handled yet. Boxed because they are rare.
    deletions: Option<Box<Deletions>>,
}

/// How many deletions of objects of one name are kept.
///
/// While a handler fails for hours, many objects of a name may be created and deleted.
const MOST_DELETIONS: usize = 32;

/// The deletions under one name.
#[derive(Debug, Clone, Default)]
struct Deletions {
    /// The deletions, sorted by number without duplicates; never empty.
    list: Vec<Deletion>,
    /// The number of deletions that were dropped because there were too many.
    lost: u32,
}

/// A deletion that some handler has not handled yet.
#[derive(Debug, Clone)]
struct Deletion {
    /// The last state of the object.
    last: Arc<CachedObject>,
    /// The number of the deletion within the kind.
    number: u64,
    /// The lanes that have not handled it.
    lanes: Lanes,
    /// The number of failed calls for it.
    tries: u32,
}

impl Payload {
    /// Creates the payload of a change for some lanes; `number` numbers a deletion.
    pub(crate) fn of(
        change: &Change,
        cause: Cause,
        lanes: &Lanes,
        number: impl FnOnce() -> u64,
    ) -> Self {
        let deletions = match change {
            // Lanes that fail carry copies of a deletion. By the number, copies are recognised when they merge.
            Change::Deleted { last } => Deletions::boxed(vec![Deletion {
                last: Arc::clone(last),
                number: number(),
                lanes: lanes.clone(),
                tries: 0,
            }]),
            _ => None,
        };
        Self {
            causes: cause.into(),
            deletions,
        }
    }

    /// Returns the last state of the object whose deletion a lane has to handle next.
    pub(crate) fn deleted(&self, lane: LaneId) -> Option<&Arc<CachedObject>> {
        self.next_deletion(lane).map(|each| &each.last)
    }

    /// Returns the deletion that a lane has to handle next.
    ///
    /// It is the oldest of those with the fewest failed calls, so that one that keeps failing does not block the
    /// others.
    fn next_deletion(&self, lane: LaneId) -> Option<&Deletion> {
        let of_lane = self.deletions_of(lane);
        of_lane.min_by_key(|each| (each.tries, each.number))
    }

    /// Returns the last state of the most recently deleted object.
    pub(crate) fn last_deleted(&self) -> Option<&Arc<CachedObject>> {
        let deletions = self.deletions.as_ref()?.list.iter();
        deletions
            .max_by_key(|each| each.number)
            .map(|each| &each.last)
    }

    /// Returns the causes of a run that begins now.
    ///
    /// A requeue that is not due yet is left out: the key runs earlier for another reason.
    pub(crate) fn causes_by_now(&self) -> Causes {
        let mut causes = self.causes.iter();
        if causes.any(|cause| matches!(cause, Cause::Requeued { .. })) {
            self.causes.due_at(Instant::now().into_std())
        } else {
            self.causes.clone()
        }
    }

    /// Returns how many deletions were dropped since the key was last processed.
    pub(crate) fn lost_deletions(&self) -> u32 {
        self.deletions.as_ref().map_or(0, |all| all.lost)
    }

    fn deletions_of(&self, lane: LaneId) -> impl Iterator<Item = &Deletion> {
        let all = self.deletions.iter().flat_map(|all| &all.list);
        all.filter(move |each| each.lanes.contains(lane))
    }

    /// Returns the payload for a lane's other deletions, after it has handled one.
    ///
    /// None if there are no others.
    pub(crate) fn later_deletions(&self, lane: LaneId) -> Option<Self> {
        let handled = self.next_deletion(lane)?.number;
        let others = self
            .deletions_of(lane)
            .filter(|each| each.number != handled)
            .map(of_lane(lane));
        let deletions = Deletions::boxed(others.collect());
        let mut payload = Self {
            deletions: Some(deletions?),
            ..Self::default()
        };
        let next = payload.deleted(lane)?;
        let (uid, version) = (next.uid().clone(), next.version().clone());
        payload.causes = Cause::Deleted { uid, version }.into();
        Some(payload)
    }

    /// Returns the number of failed calls for a lane's next deletion.
    pub(crate) fn deletion_tries(&self, lane: LaneId) -> u32 {
        self.next_deletion(lane).map_or(0, |each| each.tries)
    }

    /// Returns whether a lane has more than one deletion to handle.
    pub(crate) fn has_later_deletions(&self, lane: LaneId) -> bool {
        self.deletions_of(lane).nth(1).is_some()
    }

    /// Returns the payload for the retry of a lane.
    pub(crate) fn for_retry(&self, lane: LaneId, cause: Cause) -> Self {
        let mut deletions = self.of_lane(lane);
        let failed = self.next_deletion(lane).map(|each| each.number);
        // Only the deletion that this call was for has failed; the others keep their number of tries.
        let list = deletions.iter_mut().flat_map(|all| &mut all.list);
        for each in list.filter(|each| Some(each.number) == failed) {
            each.tries += 1;
        }
        Self {
            causes: self.causes_by_now().retried(cause),
            deletions,
        }
    }

    /// Returns the payload for a later call of one lane.
    pub(crate) fn for_lane(&self, lane: LaneId) -> Self {
        Self {
            causes: self.causes_by_now(),
            deletions: self.of_lane(lane),
        }
    }

    fn of_lane(&self, lane: LaneId) -> Option<Box<Deletions>> {
        self.deletions.as_ref()?;
        Deletions::boxed(self.deletions_of(lane).map(of_lane(lane)).collect())
    }
}

/// Returns a function that reduces a deletion to one lane.
fn of_lane(lane: LaneId) -> impl Fn(&Deletion) -> Deletion {
    move |each| Deletion {
        lanes: lane.into(),
        ..each.clone()
    }
}

impl Deletions {
    fn boxed(list: Vec<Deletion>) -> Option<Box<Self>> {
        let is_some = !list.is_empty();
        is_some.then(|| Box::new(Self { list, lost: 0 }))
    }

    /// Merges other deletions. Some of them may be the same ones, for other lanes.
    fn merge(&mut self, others: Self) {
        self.lost += others.lost;
        for other in others.list {
            let at = self
                .list
                .binary_search_by_key(&other.number, |each| each.number);
            match at {
                Ok(at) => {
                    let mine = &mut self.list[at];
                    // Two lanes that failed put the same deletion back, each for itself. It is one deletion for both.
                    mine.lanes.merge(&other.lanes);
                    // The higher number has the longer backoff.
                    mine.tries = mine.tries.max(other.tries);
                }
                Err(at) => self.list.insert(at, other),
            }
        }
        // The list is sorted by number, so the oldest are dropped.
        let surplus = self.list.len().saturating_sub(MOST_DELETIONS);
        self.list.drain(..surplus);
        self.lost += surplus as u32;
    }
}

impl lariat_queue::Payload for Payload {
    fn merge(&mut self, later: Self) {
        self.causes.extend(later.causes);
        match (&mut self.deletions, later.deletions) {
            (Some(mine), Some(theirs)) => mine.merge(*theirs),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
    }
}

impl From<Cause> for Payload {
    fn from(cause: Cause) -> Self {
        Self {
            causes: cause.into(),
            deletions: None,
        }
    }
}
