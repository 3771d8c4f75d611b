//! Plans: what reconcilers would write.

mod book;
mod receipt;
mod write;

use std::fmt;

pub(crate) use book::Book;
pub use write::PlannedWrite;

use crate::operator::Operator;

/// What the reconcilers of an operator would have written, in the order in which each came up first.
///
/// A write that would change nothing is not in it, so the plan of a cluster that is as wanted is empty. Writes that are
/// the same in all that a plan says of them are in it once, with how [many times](PlannedWrite::times) they came up. Prints as a text of several lines.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    writes: Vec<PlannedWrite>,
    left_out: u64,
}

impl Plan {
    /// Iterates over the writes.
    pub fn iter(&self) -> std::slice::Iter<'_, PlannedWrite> {
        self.writes.iter()
    }

    /// Returns how many different writes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns whether nothing would have been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns how many writes are not in the plan because it has 10,000 others.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl<'a> IntoIterator for &'a Plan {
    type Item = &'a PlannedWrite;
    type IntoIter = std::slice::Iter<'a, PlannedWrite>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing would be written\n");
        }
        for write in self {
            writeln!(f, "{write}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

impl Operator {
    /// Makes the operator only plan: from now on, and for good, what its reconcilers write is sent as a rehearsal
    /// (`dryRun=All`) and written down. The API server checks and answers as if it were done, and stores nothing.
    ///
    /// That holds for the writes of reconcilers' calls through the factory's clients, status among them.
    /// [`Reconcile::event`](crate::Reconcile::event) writes nothing, and logs the event. Handlers that are not
    /// reconcilers of this operator write as ever, and so does what is not in a call: writes on tasks a reconciler
    /// spawned are **not** rehearsed, the [recorder](Operator::events) writes the Events it is given, and definitions
    /// the operator [installs](Operator::installs) are installed. A rehearsal needs the permissions of the write, and
    /// one of an update or patch `get` beside, to tell what would change.
    /// Guards are not asked.
    ///
    /// Reconcilers see the answers, but the world stays as it is: what was created is not in the cache, and no change
    /// comes of it, so nothing loops unless a reconciler asks to be called again. A write to an object that is only
    /// planned fails, as not found; the plan [says so](PlannedWrite::refused), and the error leads to a retry with
    /// backoff as usual. So the plan is of the first step of each object, rather than of all that would follow. A write
    /// that a server or webhook does not rehearse is refused, and so are calls into pods (`exec`, `attach`,
    /// `portforward`), and into whatever is behind a `proxy` unless by a GET, which is let through as a read.
    ///
    /// ```no_run
    /// # use lariat_controller::SharedControllerFactory;
    /// # use lariat_operator::Operator;
    /// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let operator = Operator::new("reaper", &factory).plan_only();
    /// // … reconcilers
    /// operator.start(5).await?;
    /// tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    /// print!("{}", operator.planned());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn plan_only(self) -> Self {
        self.shared().plan.get_or_init(Book::default);
        self
    }

    /// Returns what has been planned so far; nothing unless the operator [only plans](Self::plan_only).
    #[must_use]
    pub fn planned(&self) -> Plan {
        self.shared().plan.get().map(Book::plan).unwrap_or_default()
    }

    /// Takes what has been planned so far; the plan begins anew.
    #[must_use = "what is taken is gone"]
    pub fn take_planned(&self) -> Plan {
        self.shared().plan.get().map(Book::take).unwrap_or_default()
    }
}
