//! A term of a process, which ends for good.

use std::error::Error;
use std::fmt;
use std::pin::Pin;

use lariat_core::Fence;
use tokio::time::{self, Instant};

use crate::error::Fenced;
use crate::leadership::Leadership;

/// One term of a process: the time from acquiring its lease to losing it.
///
/// When the process acquires the lease again after it was lost, that is another term, and this one remains over. Clones
/// are the same term.
///
/// ```no_run
/// use lariat::lease::Leadership;
///
/// # async fn example(leadership: Leadership) {
/// let term = leadership.term();
/// term.over().await;
/// // Also if this process leads again by now.
/// assert!(!term.leads());
/// # }
/// ```
#[derive(Clone)]
pub struct Term {
    leadership: Leadership,
    /// The number of the term; `None` if this process did not lead.
    number: Option<u64>,
}

impl Leadership {
    /// Returns the present term; if this process does not lead, a term that is over.
    #[must_use]
    pub fn term(&self) -> Term {
        Term {
            leadership: self.clone(),
            number: self.renewed_term().map(|term| term.number),
        }
    }
}

impl Term {
    /// Returns whether the process leads in this term now.
    ///
    /// From the deadline on it returns `false`, even if the elector has not noticed yet. It returns `true` again only if
    /// a late renewal succeeds, which shows that no other process has held the lease meanwhile.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.deadline().is_some()
    }

    /// Returns when this term ends unless the lease is renewed; `None` if it is over.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let current = self.leadership.renewed_term()?;
        (Some(current.number) == self.number).then_some(current.deadline)
    }

    /// Waits until this term is over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn over(&self) {
        let mut state = self.leadership.subscribe();
        // Read again after each wait: a renewal moves the deadline, and the next term may have begun.
        while let Some(deadline) = self.deadline() {
            tokio::select! {
                _ = state.changed() => {}
                () = time::sleep_until(deadline) => {}
            }
        }
    }
}

/// A term is open as long as the process leads in it.
impl Fence for Term {
    fn is_open(&self) -> bool {
        self.leads()
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let term = self.clone();
        Box::pin(async move { term.over().await })
    }

    fn error(&self, write: &dyn fmt::Display, was_sent: bool) -> Box<dyn Error + Send + Sync> {
        Box::new(Fenced::new(self.leadership.lease(), write, was_sent))
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Term")
            .field("lease", &self.leadership.lease())
            .field("number", &self.number)
            .field("leads", &self.leads())
            .finish()
    }
}
