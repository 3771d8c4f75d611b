//! Operators that only plan.

use super::operator::Operator;
use crate::guard::{Book, Plan};

impl Operator {
    /// Makes the operator only plan: its reconcilers' writes are sent as dry runs.
    ///
    /// This cannot be undone. The writes are sent with `dryRun=All` and recorded: the API server checks and answers
    /// them as usual, and stores nothing.
    ///
    /// This covers the writes of reconcilers' calls through the factory's clients, including status.
    /// [`Reconcile::event`](crate::Reconcile::event) writes nothing, and logs the event. Handlers that are not
    /// reconcilers of this operator write as usual, and so does everything outside a call: writes on tasks that a
    /// reconciler spawned are **not** dry runs, the [recorder](Operator::events) writes its Events, and CRDs the
    /// operator [installs](Operator::installs) are installed. A dry run needs the permissions of the write; one of an
    /// update or patch also needs `get`, to show what would change. Guards are not asked.
    ///
    /// Reconcilers see the answers, but nothing changes: a created object is not in the cache and causes no watch
    /// event, so reconcilers do not loop unless they ask for a requeue. A write to an object that is only planned fails
    /// with not found; the plan [has the error](crate::PlannedWrite::refused), and the call is retried with backoff as
    /// usual. So the plan has the first step for each object, and not everything that would follow. A write that a
    /// server or webhook cannot answer as a dry run is refused, as are calls into pods (`exec`, `attach`,
    /// `portforward`) and calls through a `proxy`, except for GET, which passes as a read.
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

    /// Returns the plan so far; empty unless the operator [only plans](Self::plan_only).
    #[must_use]
    pub fn planned(&self) -> Plan {
        self.state().feature::<Book>().plan()
    }

    /// Takes the plan so far, and begins a new one.
    #[must_use = "what is taken is gone"]
    pub fn take_planned(&self) -> Plan {
        self.state().feature::<Book>().take()
    }
}
