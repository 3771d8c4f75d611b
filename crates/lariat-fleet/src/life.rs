//! One stay of a cluster in a fleet, from joining to leaving.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{describe, without_credentials};
use lariat_operator::{Operator, OperatorError};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::error::SetupError;
use crate::fleet::{Fleet, Joined, Member};
use crate::status::{MemberPhase, State};
use crate::wanted::Access;

/// The delay after the first failed start; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay after a failed start.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// One stay of a cluster in a fleet.
pub(crate) struct Life {
    /// The fleet.
    pub(crate) fleet: Fleet,
    /// The name of the cluster.
    pub(crate) name: Arc<str>,
    /// How the cluster is reached.
    pub(crate) access: Access,
    /// The number of workers per kind; `None` for the default.
    pub(crate) workers: Option<usize>,
    /// Cancelled when the cluster must leave.
    pub(crate) leaving: CancellationToken,
}

/// Why an operator has stopped.
enum End {
    /// The cluster must leave.
    Leaves,
    /// It could not be started, or has lost its lease.
    Failed(SetupError),
}

impl Life {
    /// Runs the operator until the cluster must leave; restarts it after failures.
    pub(crate) async fn run(self) {
        let mut delay = FIRST_DELAY;
        loop {
            let began = Instant::now();
            self.set(MemberPhase::Starting, None);
            let error = match self.stay().await {
                End::Leaves => break,
                // The error is shown in the status and logged, and a kubeconfig's error may quote credentials.
                End::Failed(error) => without_credentials(&describe(&*error)).into_owned(),
            };
            // An operator that ran for a while was healthy, so its next failure starts with the first delay.
            if began.elapsed() > LONGEST_DELAY {
                delay = FIRST_DELAY;
            }
            let (cluster, retry_in) = (&self.name, tracing::field::debug(delay));
            tracing::warn!(%cluster, error, retry_in, "the operator of a cluster failed");
            self.set(MemberPhase::Waiting(delay), Some(error.as_str().into()));
            tokio::select! {
                () = self.leaving.cancelled() => break,
                () = time::sleep(delay) => {}
            }
            delay = (delay * 2).min(LONGEST_DELAY);
        }
        // Only now: while the cluster leaves, its status shows that.
        self.fleet.0.members.lock().remove(&self.name);
        tracing::info!(cluster = %self.name, "a cluster has left the fleet");
    }

    /// Builds the operator and runs it until it fails or the cluster must leave.
    async fn stay(&self) -> End {
        let made = tokio::select! {
            biased;
            // Credentials may come from a command, which may take long.
            () = self.leaving.cancelled() => return End::Leaves,
            made = self.member() => made,
        };
        let member = match made {
            Ok(member) => member,
            Err(error) => return End::Failed(error),
        };
        let operator = member.operator().clone();
        // The member is published before the operator starts, so that reconcilers of other clusters can reach it.
        if let Some(joined) = self.fleet.0.members.lock().get_mut(&self.name) {
            joined.member = Some(member);
        }
        let ended = self.operate(&operator).await;
        if let End::Leaves = ended {
            self.set(MemberPhase::Leaving, None);
        }
        // Also after a failed start, which may have started some of the kinds.
        let stopped = operator.stop().await;
        if let Some(joined) = self.fleet.0.members.lock().get_mut(&self.name) {
            joined.member = None;
        }
        if let Err(error) = stopped {
            let (cluster, error) = (&self.name, describe(&error));
            tracing::warn!(%cluster, error, "the operator of a cluster did not stop in time");
        }
        ended
    }

    /// Connects to the cluster and registers its reconcilers.
    async fn member(&self) -> Result<Member, SetupError> {
        let state = &self.fleet.0;
        let client = self.access.client().await?;
        // Both functions are the user's. A panic in them fails this cluster, not the fleet.
        let make = || {
            let factory = (state.factory)(&self.name, client);
            let operator = Operator::new(&state.name, &factory);
            let member = Member::new(Arc::clone(&self.name), operator, self.fleet.downgrade());
            (state.setup)(&member).map(|()| member)
        };
        catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| Err(panicked(&*panic)))
    }

    /// Starts the operator and waits until the cluster must leave or the lease is lost.
    async fn operate(&self, operator: &Operator) -> End {
        let started = tokio::select! {
            biased;
            () = self.leaving.cancelled() => return End::Leaves,
            started = operator.start(self.workers) => started,
        };
        if let Err(error) = started {
            return End::Failed(error.into());
        }
        self.set(MemberPhase::Running, None);
        tracing::info!(cluster = %self.name, "the operator of a cluster is running");
        tokio::select! {
            biased;
            () = self.leaving.cancelled() => End::Leaves,
            // A lost lease ends this operator; the next one takes part in the election again.
            lost = operator.factory().lease_lost() => End::Failed(OperatorError::Lost(lost).into()),
        }
    }

    /// Publishes the phase of the cluster.
    fn set(&self, phase: MemberPhase, error: Option<Arc<str>>) {
        let mut members = self.fleet.0.members.lock();
        match members.get_mut(&self.name) {
            Some(joined) => {
                // The last error stays visible while the operator is started again.
                let kept = joined
                    .state
                    .error
                    .take()
                    .filter(|_| phase == MemberPhase::Starting);
                joined.state = State::new(phase, error.or(kept));
            }
            None => {
                let joined = Joined {
                    member: None,
                    state: State::new(phase, error),
                };
                members.insert(Arc::clone(&self.name), joined);
            }
        }
    }
}

/// Returns the error for a panic of the user's functions.
fn panicked(panic: &(dyn Any + Send)) -> SetupError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("(no message)");
    format!("the function that registers the reconcilers panicked: {text}").into()
}
