//! The life of a cluster in a fleet, from joining to leaving.

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

/// The first delay after a failed start, and the longest one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// One stay of a cluster in a fleet.
pub(crate) struct Life {
    pub(crate) fleet: Fleet,
    pub(crate) name: Arc<str>,
    pub(crate) access: Access,
    pub(crate) workers: Option<usize>,
    /// Cancelled when the cluster has to leave.
    pub(crate) leaving: CancellationToken,
}

/// Why an operator does not run any more.
enum End {
    /// The cluster has to leave.
    Leaves,
    Failed(SetupError),
}

impl Life {
    /// Runs the operator of the cluster until it has to leave; starts it again if it fails.
    pub(crate) async fn run(self) {
        let mut delay = FIRST_DELAY;
        loop {
            let began = Instant::now();
            self.set(MemberPhase::Starting, None);
            let error = match self.stay().await {
                End::Leaves => break,
                End::Failed(error) => without_credentials(&describe(&*error)).into_owned(),
            };
            if began.elapsed() > LONGEST_DELAY {
                delay = FIRST_DELAY;
            }
            let (cluster, retry_in) = (&self.name, tracing::field::debug(delay));
            tracing::warn!(%cluster, error, retry_in, "the operator of a cluster does not run");
            self.set(MemberPhase::Waiting(delay), Some(error.as_str().into()));
            tokio::select! {
                () = self.leaving.cancelled() => break,
                () = time::sleep(delay) => {}
            }
            delay = (delay * 2).min(LONGEST_DELAY);
        }
        self.fleet.0.members.lock().remove(&self.name);
        tracing::info!(cluster = %self.name, "a cluster has left the fleet");
    }

    /// Builds the operator, and runs it until it fails or the cluster has to leave.
    async fn stay(&self) -> End {
        let made = tokio::select! {
            biased;
            // Credentials may come from a command that takes its time.
            () = self.leaving.cancelled() => return End::Leaves,
            made = self.member() => made,
        };
        let member = match made {
            Ok(member) => member,
            Err(error) => return End::Failed(error),
        };
        let operator = member.operator().clone();
        if let Some(joined) = self.fleet.0.members.lock().get_mut(&self.name) {
            joined.member = Some(member);
        }
        let ended = self.operate(&operator).await;
        if let End::Leaves = ended {
            self.set(MemberPhase::Leaving, None);
        }
        let stopped = operator.stop().await;
        if let Some(joined) = self.fleet.0.members.lock().get_mut(&self.name) {
            joined.member = None;
        }
        if let Err(error) = stopped {
            let (cluster, error) = (&self.name, describe(&error));
            tracing::warn!(%cluster, error, "the operator of a cluster has not stopped in time");
        }
        ended
    }

    /// Connects to the cluster and registers its reconcilers.
    async fn member(&self) -> Result<Member, SetupError> {
        let state = &self.fleet.0;
        let client = self.access.client().await?;
        // The functions are the user's; their panics must not end the fleet.
        let make = || {
            let factory = (state.factory)(&self.name, client);
            let operator = Operator::new(&state.name, &factory);
            let member = Member::new(Arc::clone(&self.name), operator, self.fleet.downgrade());
            (state.setup)(&member).map(|()| member)
        };
        catch_unwind(AssertUnwindSafe(make)).unwrap_or_else(|panic| Err(panicked(&*panic)))
    }

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
        tracing::info!(cluster = %self.name, "the operator of a cluster runs");
        tokio::select! {
            biased;
            () = self.leaving.cancelled() => End::Leaves,
            lost = operator.factory().lease_lost() => End::Failed(OperatorError::Lost(lost).into()),
        }
    }

    fn set(&self, phase: MemberPhase, error: Option<Arc<str>>) {
        let mut members = self.fleet.0.members.lock();
        match members.get_mut(&self.name) {
            Some(joined) => {
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

fn panicked(panic: &(dyn Any + Send)) -> SetupError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("(no message)");
    format!("the function that registers the reconcilers panicked: {text}").into()
}
