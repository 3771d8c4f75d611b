//! What travels with a key through the queue.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change};
use lariat_core::{Cause, Causes, ObjectKey};
use lariat_queue::{LaneId, Lanes, Work, WorkQueue};
use tokio::time::Instant;

use crate::current::Caller;
use crate::sentinel::{Ask, ChainRun};

/// The queue of a kind.
pub(crate) type Queue = WorkQueue<ObjectKey, Payload>;

/// A key that a worker has, to be given back.
pub(crate) type Taken = Work<ObjectKey, Payload>;

/// Why a key is queued, and what is left of objects that were deleted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payload {
    pub(crate) causes: Causes,
    /// Deletions that some handler has not handled. Rare, so boxed.
    deletions: Option<Box<Deletions>>,
    /// The run whose write or request brought the key here, if that run was itself one of a chain.
    pub(crate) step: Option<Arc<ChainRun>>,
}

/// How many deletions under one name are kept: objects may come and go while a handler fails for hours.
const MOST_DELETIONS: usize = 32;

#[derive(Debug, Clone, Default)]
struct Deletions {
    /// In their order, and none twice; never empty.
    list: Vec<Deletion>,
    /// How many were not kept, for there were too many.
    lost: u32,
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
    /// How many calls for it have failed.
    tries: u32,
}

impl Payload {
    /// Makes what travels with a change for some lanes; `number` counts deletions in their order.
    pub(crate) fn of(
        change: &Change,
        cause: Cause,
        lanes: &Lanes,
        number: impl FnOnce() -> u64,
    ) -> Self {
        let deletions = match change {
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
            step: None,
        }
    }

    /// Notes which run brought the key here, if its causes go on a chain of runs.
    pub(crate) fn led_by(mut self, caller: Option<&Caller>) -> Self {
        if self.causes.chain() > 0 {
            self.step = caller.and_then(|caller| caller.step.clone());
        }
        self
    }

    /// Returns the last state of the object whose deletion a lane is to handle next.
    pub(crate) fn deleted(&self, lane: LaneId) -> Option<&Arc<CachedObject>> {
        self.next_deletion(lane).map(|each| &each.last)
    }

    /// Returns the deletion a lane is to handle next: the oldest of those that were tried least often, so that one that
    /// fails does not keep the others back.
    fn next_deletion(&self, lane: LaneId) -> Option<&Deletion> {
        let of_lane = self.deletions_of(lane);
        of_lane.min_by_key(|each| (each.tries, each.number))
    }

    /// Returns the last state of the object whose deletion came last, of those that some handler has not handled.
    pub(crate) fn last_deleted(&self) -> Option<&Arc<CachedObject>> {
        let deletions = self.deletions.as_ref()?.list.iter();
        deletions
            .max_by_key(|each| each.number)
            .map(|each| &each.last)
    }

    /// Returns what the sentinel looks at before a run.
    pub(crate) fn ask(&self) -> Ask<'_> {
        Ask {
            causes: &self.causes,
            has_deletion: self.deletions.is_some(),
            step: self.step.as_ref(),
        }
    }

    /// Returns why the key is dequeued now; that a handler asked to be called later is no reason.
    pub(crate) fn causes_by_now(&self) -> Causes {
        let mut causes = self.causes.iter();
        if causes.any(|cause| matches!(cause, Cause::Requeued { .. })) {
            self.causes.due_at(Instant::now().into_std())
        } else {
            self.causes.clone()
        }
    }

    /// Returns how many deletions were not kept since a worker had the key.
    pub(crate) fn lost_deletions(&self) -> u32 {
        self.deletions.as_ref().map_or(0, |all| all.lost)
    }

    fn deletions_of(&self, lane: LaneId) -> impl Iterator<Item = &Deletion> {
        let all = self.deletions.iter().flat_map(|all| &all.list);
        all.filter(move |each| each.lanes.contains(lane))
    }

    /// Returns what a lane that has handled a deletion needs to be called for the others, if there are any.
    pub(crate) fn later_deletions(&self, lane: LaneId) -> Option<Self> {
        let handled = self.next_deletion(lane)?.number;
        let others = self
            .deletions_of(lane)
            .filter(|each| each.number != handled);
        let others = Deletions::boxed(others.map(of_lane(lane)).collect());
        let mut payload = Self {
            deletions: Some(others?),
            ..Self::default()
        };
        let next = payload.deleted(lane)?;
        let (uid, version) = (next.uid().clone(), next.version().clone());
        payload.causes = Cause::Deleted { uid, version }.into();
        Some(payload)
    }

    /// Returns how many calls for the deletion to be handled next have failed.
    pub(crate) fn deletion_tries(&self, lane: LaneId) -> u32 {
        self.next_deletion(lane).map_or(0, |each| each.tries)
    }

    /// Returns whether there are several deletions a lane has not handled.
    pub(crate) fn has_later_deletions(&self, lane: LaneId) -> bool {
        self.deletions_of(lane).nth(1).is_some()
    }

    /// Returns what a lane that failed needs to try again, after a run with some chain that was this step of it.
    pub(crate) fn for_retry(
        &self,
        lane: LaneId,
        cause: Cause,
        chain: u32,
        step: Option<Arc<ChainRun>>,
    ) -> Self {
        let mut deletions = self.of_lane(lane);
        let failed = self.next_deletion(lane).map(|each| each.number);
        let list = deletions.iter_mut().flat_map(|all| &mut all.list);
        for each in list.filter(|each| Some(each.number) == failed) {
            each.tries += 1;
        }
        Self {
            causes: self.causes_by_now().retried(cause, chain),
            deletions,
            step,
        }
    }

    /// Returns what one of the lanes needs to be called later.
    pub(crate) fn for_lane(&self, lane: LaneId) -> Self {
        Self {
            causes: self.causes_by_now(),
            deletions: self.of_lane(lane),
            step: self.step.clone(),
        }
    }

    fn of_lane(&self, lane: LaneId) -> Option<Box<Deletions>> {
        self.deletions.as_ref()?;
        Deletions::boxed(self.deletions_of(lane).map(of_lane(lane)).collect())
    }
}

/// Makes of a deletion the part of one lane.
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

    /// Takes in others, which may be the same by way of another handler that failed.
    fn merge(&mut self, others: Self) {
        self.lost += others.lost;
        for other in others.list {
            let at = self
                .list
                .binary_search_by_key(&other.number, |each| each.number);
            match at {
                Ok(at) => {
                    let mine = &mut self.list[at];
                    mine.lanes.merge(&other.lanes);
                    mine.tries = mine.tries.max(other.tries);
                }
                Err(at) => self.list.insert(at, other),
            }
        }
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
        // Of two runs one that made progress counts, as of two causes the shorter chain does.
        if self.step.as_ref().is_none_or(|step| !step.has_progressed()) {
            self.step = later.step.or(self.step.take());
        }
    }
}

impl From<Cause> for Payload {
    fn from(cause: Cause) -> Self {
        Self {
            causes: cause.into(),
            deletions: None,
            step: None,
        }
    }
}
