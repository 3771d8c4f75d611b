//! A server that runs.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::time::{self, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::observed::Observed;
use super::routes;
use super::state::ServerState;
use crate::samples::PERIOD;

/// A console that is being served.
///
/// Dropping the handle does not end the server, which ends with its factories; see [`Serve::serve`](super::Serve::serve).
pub struct ConsoleServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ConsoleServer {
    /// Starts the tasks of a server: one that serves, and one that takes samples.
    pub(super) fn spawn(
        listener: TcpListener,
        address: SocketAddr,
        state: Arc<ServerState>,
    ) -> Self {
        state.remember_changes();
        let (tasks, stop) = (TaskTracker::new(), state.stopping.clone());
        let router = routes::router(Arc::clone(&state));
        let (members, end) = (state.members.clone(), stop.clone());
        tasks.spawn(async move {
            let serving = lariat_http::serve("the console", listener, router, end.clone());
            let ended = async {
                end.run_until_cancelled(members.ended()).await;
                end.cancel();
            };
            tokio::join!(serving, ended);
        });
        let sampled = Arc::clone(&state);
        tasks.spawn(stop.clone().run_until_cancelled_owned(async move {
            let mut ticks = time::interval(PERIOD);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                sampled.samples.take(&sampled.members);
            }
        }));
        tasks.close();
        tracing::info!(%address, "the console is served");
        Self {
            address,
            state,
            tasks,
            stop,
        }
    }

    /// Returns the address that is listened on, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a factory or an operator under a context id; see [`Console::with`](super::Console::with).
    ///
    /// If the server has ended with its other factories, nothing happens.
    pub fn add(&self, context: &str, observed: &impl Observed) {
        observed.join(context, &self.state.members, &mut None);
        self.state.remember_changes();
    }

    /// Ends the server: streams end, requests have ten seconds, and all connections are closed.
    ///
    /// Further calls wait for the same end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends only the wait.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.ended().await;
    }

    /// Waits until the server has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn ended(&self) {
        self.tasks.wait().await;
    }
}

impl fmt::Debug for ConsoleServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
