//! The memory for the bodies of all reviews in progress.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// The bytes of each body that need no budget, so that small reviews never wait for large ones.
const FREE: usize = 64 * 1024;
/// The unit of the budget: a semaphore of bytes would be too small on 32 bits.
const UNIT: usize = 1024;
/// The longest wait of a body for memory.
const WAIT: Duration = Duration::from_secs(1);

/// The memory for the bodies of all reviews in progress. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Semaphore>);

/// The memory of one review, which is returned when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    budget: Budget,
    /// The length of the body so far.
    length: usize,
    held: Option<OwnedSemaphorePermit>,
}

/// There was no memory within the wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(units)))
    }

    pub(super) fn share(&self) -> Share {
        Share {
            budget: self.clone(),
            length: 0,
            held: None,
        }
    }
}

impl Share {
    /// Takes memory for further bytes of the body; waits for it, but not longer than until the deadline.
    pub(super) async fn grow(&mut self, by: usize, deadline: Instant) -> Result<(), Exhausted> {
        self.length += by;
        let needed = self.length.saturating_sub(FREE).div_ceil(UNIT);
        let held = self
            .held
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let Some(more) = needed.checked_sub(held).filter(|more| *more > 0) else {
            return Ok(());
        };
        let more = u32::try_from(more).map_err(|_| Exhausted)?;
        let taken = Arc::clone(&self.budget.0).acquire_many_owned(more);
        let until = deadline.min(Instant::now() + WAIT);
        let taken = timeout_at(until, taken).await;
        let taken = taken.map_err(|_| Exhausted)?.map_err(|_| Exhausted)?;
        match &mut self.held {
            Some(held) => held.merge(taken),
            None => self.held = Some(taken),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn exhausted_budget_refuses_large_bodies_and_takes_small_ones() {
        let budget = Budget::new(10 * UNIT);
        let late = Instant::now() + Duration::from_secs(30);
        let mut first = budget.share();
        first.grow(FREE, late).await.unwrap();
        first.grow(10 * UNIT, late).await.unwrap();
        let mut second = budget.share();
        second.grow(FREE, late).await.unwrap();
        assert_eq!(second.grow(1, late).await, Err(Exhausted));
        drop(first);
        second.grow(1, late).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn returned_memory_is_taken_within_the_wait() {
        let budget = Budget::new(UNIT);
        let late = Instant::now() + Duration::from_secs(30);
        let (mut first, mut second) = (budget.share(), budget.share());
        first.grow(FREE + UNIT, late).await.unwrap();
        let waiting = async { second.grow(FREE + UNIT, late).await };
        let returning = async { drop(first) };
        let (taken, ()) = tokio::join!(waiting, returning);
        taken.unwrap();
    }
}
