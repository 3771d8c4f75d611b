//! Operators that only plan: every write of the factory is a dry run.

use super::operator::Operator;
use crate::guard::{Book, Plan, PlanGate};

impl Operator {
    /// Makes the factory only plan: its clients send writes as dry runs.
    ///
    /// This cannot be undone. Writes are sent with `dryRun=All` and recorded: the API server checks and answers them as
    /// usual, and stores nothing.
    ///
    /// **What is covered.** All writes from now on through any client that the factory has handed out or will hand out:
    /// in calls and outside, on spawned tasks and other threads, of handlers that are not reconcilers of this operator,
    /// of webhooks, and of CRDs that the operator [installs](Operator::installs), so that a CRD that is missing stays
    /// missing. Guards do not count dry runs. Events of the operator are logged instead. **Not** covered are writes
    /// through other clients, such as the one that the factory was created with, and the lease of an election.
    ///
    /// **Permissions.** A dry run needs the permissions of the write. A dry run of an update or patch also needs `get`,
    /// to show what would change.
    ///
    /// **What follows.** Reconcilers get the answers, but nothing changes: a created object is not in the cache and
    /// causes no watch event, so reconcilers do not loop unless they request it. A write to an object that exists only
    /// in the plan fails with not found. The plan [has the error](crate::PlannedWrite::refused), and the call is
    /// retried with backoff as usual. So the plan has the first step for each object, and not everything that would
    /// follow from it.
    ///
    /// **What cannot be run dry** is refused: writes that an aggregated API server or a webhook does not support as dry
    /// runs, calls into Pods (`exec`, `attach`, `portforward`), and calls through a `proxy`, except for GET.
    ///
    /// ```no_run
    /// # use lariat::{Operator, SharedControllerFactory};
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
        if self.state().plan_only() {
            let book = Book::clone(&self.state().feature::<Book>());
            self.factory().add_gate(PlanGate::new(book));
        }
        self
    }

    /// Returns the plan so far.
    ///
    /// It is empty unless the operator [only plans](Self::plan_only).
    #[must_use]
    pub fn planned(&self) -> Plan {
        self.state().feature::<Book>().plan()
    }

    /// Returns the plan so far, and begins a new one.
    #[must_use = "the writes are removed from the operator's plan"]
    pub fn take_planned(&self) -> Plan {
        self.state().feature::<Book>().take()
    }
}
