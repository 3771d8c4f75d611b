//! An operator that only plans.

use super::operator::Operator;
use crate::guard::{Book, Plan};

impl Operator {
    /// Makes the operator only plan: from now on, and for good, what its reconcilers write is sent as a dry run
    /// (`dryRun=All`) and written down. The API server checks and answers as if it were done, and stores nothing.
    ///
    /// That holds for the writes of reconcilers' calls through the factory's clients, status among them.
    /// [`Reconcile::event`](crate::Reconcile::event) writes nothing, and logs the event. Handlers that are not
    /// reconcilers of this operator write as ever, and so does what is not in a call: writes on tasks a reconciler
    /// spawned are **no** dry runs, the [recorder](Operator::events) writes the Events it is given, and CRDs the
    /// operator [installs](Operator::installs) are installed. A dry run needs the permissions of the write, and one of an
    /// update or patch `get` beside, to show what would change.
    /// Guards are not asked.
    ///
    /// Reconcilers see the answers, but the world stays as it is: what was created is not in the cache, and no change
    /// comes of it, so nothing loops unless a reconciler asks to be called again. A write to an object that is only
    /// planned fails, as not found; the plan [says so](crate::PlannedWrite::refused), and the error leads to a retry with
    /// backoff as usual. So the plan is of the first step of each object, rather than of all that would follow. A write
    /// of which a server or webhook makes no dry run is refused, and so are calls into pods (`exec`, `attach`,
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
        self.state().plan_only();
        self
    }

    /// Returns what has been planned so far; nothing unless the operator [only plans](Self::plan_only).
    #[must_use]
    pub fn planned(&self) -> Plan {
        self.state().feature::<Book>().plan()
    }

    /// Takes what has been planned so far; the plan begins anew.
    #[must_use = "what is taken is gone"]
    pub fn take_planned(&self) -> Plan {
        self.state().feature::<Book>().take()
    }
}
