//! One stay of a cluster in a fleet, from joining to leaving.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_core::{describe, without_credentials};
use lariat_operator::{Operator, OperatorError};
use tokio::sync::watch;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::error::SetupError;
use crate::fleet::{Fleet, Joined, Member};
use crate::identity::{Claim, identify};
use crate::status::{MemberPhase, State};
use crate::terms::Terms;
use crate::wanted::Access;

/// The delay after the first failed start; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay after a failed start.
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// The time limit for connecting to a cluster and identifying it.
const VETTING: Duration = Duration::from_secs(30);

/// One stay of a cluster in a fleet.
pub(crate) struct Life {
    /// The fleet.
    pub(crate) fleet: Fleet,
    /// The name of the cluster.
    pub(crate) name: Arc<str>,
    /// How the cluster is reached; changes with its credentials.
    pub(crate) access: watch::Receiver<Access>,
    /// The terms in which the clients of the cluster may write.
    pub(crate) terms: Terms,
    /// The number of workers per kind; `None` for the default.
    pub(crate) workers: Option<usize>,
    /// Cancelled when the cluster must leave.
    pub(crate) leaving: CancellationToken,
}

/// An access that works: the cluster has answered, and no other member has it.
struct Vetted {
    access: Access,
    client: Client,
    /// Held until the operator has stopped. `None` if the cluster did not show its identity.
    _claim: Option<Claim>,
}

/// Why an operator has stopped.
enum End {
    /// The cluster must leave.
    Leaves,
    /// Another access works, and replaces the present one.
    Replaced(Box<Vetted>),
    /// It could not be started, or has lost its lease.
    Failed(SetupError),
}

impl Life {
    /// Runs the operator until the cluster must leave; restarts it after failures.
    pub(crate) async fn run(mut self) {
        let mut delay = FIRST_DELAY;
        let mut vetted = None;
        loop {
            let began = Instant::now();
            self.set(MemberPhase::Starting, None);
            let error = match self.stay(vetted.take()).await {
                End::Leaves => break,
                End::Replaced(by) => {
                    vetted = Some(*by);
                    delay = FIRST_DELAY;
                    continue;
                }
                End::Failed(error) => shown(&*error),
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
                () = changed(&mut self.access) => delay = FIRST_DELAY,
                () = time::sleep(delay) => delay = (delay * 2).min(LONGEST_DELAY),
            }
        }
        // Only now: while the cluster leaves, its status shows that.
        self.fleet.0.members.lock().remove(&self.name);
        tracing::info!(cluster = %self.name, "a cluster has left the fleet");
    }

    /// Builds the operator and runs it until it fails, is replaced, or the cluster must leave.
    async fn stay(&mut self, vetted: Option<Vetted>) -> End {
        let leaving = self.leaving.clone();
        let made = tokio::select! {
            biased;
            // Credentials may come from a command, which may take long.
            () = leaving.cancelled() => return End::Leaves,
            made = self.member(vetted) => made,
        };
        let (member, vetted) = match made {
            Ok(made) => made,
            Err(error) => return End::Failed(error),
        };
        let operator = member.operator().clone();
        // The member is published before the operator starts, so that reconcilers of other clusters can reach it.
        if let Some(joined) = self.fleet.0.members.lock().get_mut(&self.name) {
            joined.member = Some(member);
        }
        let ended = self.operate(&operator, &vetted.access).await;
        if !matches!(ended, End::Failed(_)) {
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

    /// Connects to the cluster, unless that was done, and registers its reconcilers.
    async fn member(&mut self, vetted: Option<Vetted>) -> Result<(Member, Vetted), SetupError> {
        let vetted = match vetted {
            Some(vetted) => vetted,
            None => {
                let access = self.access.borrow_and_update().clone();
                self.vet(access).await?
            }
        };
        let state = &self.fleet.0;
        let client = vetted.client.clone();
        // Both functions are the user's. A panic in them fails this cluster, not the fleet.
        let make = || {
            let factory = (state.factory)(&self.name, client);
            let operator = Operator::new(&state.name, &factory);
            let member = Member::new(Arc::clone(&self.name), operator, self.fleet.downgrade());
            (state.setup)(&member).map(|()| member)
        };
        let made = catch_unwind(AssertUnwindSafe(make));
        let member = made.unwrap_or_else(|panic| Err(panicked(&*panic)))?;
        Ok((member, vetted))
    }

    /// Connects to the cluster, and claims it for this member.
    async fn vet(&self, access: Access) -> Result<Vetted, SetupError> {
        let vetting = async {
            let client = self.terms.fence(access.client().await?);
            let cluster = identify(&client).await?;
            let claim = cluster.map(|cluster| self.fleet.0.identities.claim(cluster, &self.name));
            // Otherwise the client may be of the next content, which is vetted when it has been noticed.
            if access.is_outdated().await {
                return Err("the kubeconfig has changed meanwhile and is read again".into());
            }
            Ok::<_, SetupError>((client, claim.transpose()?))
        };
        let vetted = time::timeout(VETTING, vetting).await;
        let (client, claim) = vetted
            .unwrap_or_else(|_| Err(format!("it did not answer within {VETTING:?}").into()))?;
        Ok(Vetted {
            access,
            client,
            _claim: claim,
        })
    }

    /// Starts the operator and waits until the cluster must leave, has another access, or the lease is lost.
    async fn operate(&mut self, operator: &Operator, present: &Access) -> End {
        let leaving = self.leaving.clone();
        // The clone has seen what this receiver has.
        let (workers, mut access) = (self.workers, self.access.clone());
        let this = &*self;
        let ended = {
            let run = async {
                if let Err(error) = operator.start(workers).await {
                    return End::Failed(error.into());
                }
                this.set(MemberPhase::Running, None);
                tracing::info!(cluster = %this.name, "the operator of a cluster is running");
                // A lost lease ends this operator; the next one takes part in the election again.
                let lost = operator.factory().lease_lost().await;
                End::Failed(OperatorError::Lost(lost).into())
            };
            tokio::select! {
                biased;
                () = leaving.cancelled() => End::Leaves,
                ended = run => ended,
                by = this.replacement(&mut access, present) => End::Replaced(Box::new(by)),
            }
        };
        self.access = access;
        ended
    }

    /// Waits until another access works.
    ///
    /// Until then the operator runs with the present one, and the error is shown.
    async fn replacement(&self, access: &mut watch::Receiver<Access>, present: &Access) -> Vetted {
        changed(access).await;
        let mut delay = FIRST_DELAY;
        loop {
            let wanted = access.borrow_and_update().clone();
            if wanted.is_same(present) {
                self.note(None);
                changed(access).await;
                delay = FIRST_DELAY;
                continue;
            }
            let error = match self.vet(wanted).await {
                Ok(vetted) => return vetted,
                Err(error) => format!("the new credentials are not used: {}", shown(&*error)),
            };
            let (cluster, retry_in) = (&self.name, tracing::field::debug(delay));
            tracing::warn!(%cluster, error, retry_in, "a cluster keeps its credentials");
            self.note(Some(error.as_str().into()));
            tokio::select! {
                () = changed(access) => delay = FIRST_DELAY,
                () = time::sleep(delay) => delay = (delay * 2).min(LONGEST_DELAY),
            }
        }
    }

    /// Publishes an error of a cluster that stays in its phase.
    fn note(&self, error: Option<Arc<str>>) {
        if let Some(joined) = self.fleet.0.members.lock().get_mut(&self.name) {
            joined.state.error = error;
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

/// Waits for another access; for ever after the run has ended.
async fn changed(access: &mut watch::Receiver<Access>) {
    if access.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Returns the text of an error, which is shown and logged: a kubeconfig's error may quote credentials.
fn shown(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    without_credentials(&describe(error)).into_owned()
}

/// Returns the error for a panic of the user's functions.
fn panicked(panic: &(dyn Any + Send)) -> SetupError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("(no message)");
    format!("the function that registers the reconcilers panicked: {text}").into()
}
