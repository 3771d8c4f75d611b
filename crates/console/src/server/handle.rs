//! The handle of a running server.

use std::fmt;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;

use lariat_controller::run_apart;
use tokio::net::TcpListener;
use tokio::time::{self, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::observed::Observed;
use super::routes;
use super::state::ServerState;
use crate::samples::PERIOD;

/// A running server of a console.
///
/// Dropping the handle does not end the server. It ends with its factories, see [`Serve::serve`](super::Serve::serve),
/// or with [`shutdown`](Self::shutdown).
///
/// ```no_run
/// use lariat::console::{Console, Serve};
/// use lariat::SharedControllerFactory;
///
/// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// let server = factory.serve(Console::on("127.0.0.1:0"))?;
/// println!("http://{}", server.address());
/// factory.run(5, lariat::termination()).await?;
/// server.ended().await;
/// # Ok(()) }
/// ```
pub struct ConsoleServer {
    address: SocketAddr,
    state: Arc<ServerState>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ConsoleServer {
    /// Starts the tasks of a server: one that serves, and one that takes samples.
    pub(super) fn spawn(
        listener: StdListener,
        address: SocketAddr,
        state: Arc<ServerState>,
    ) -> Self {
        // Before anything is served, so that the changes of the first sync are kept as well.
        state.remember_changes();
        let (tasks, stop) = (TaskTracker::new(), state.stopping.clone());
        let router = routes::router(Arc::clone(&state));
        let (members, end) = (state.members.clone(), stop.clone());
        let sampled = Arc::clone(&state);
        // Handlers may block the threads of the program's runtime, and probes must not fail with them.
        tasks.spawn(run_apart("lariat-console", async move {
            let listener = match TcpListener::from_std(listener) {
                Ok(listener) => listener,
                Err(error) => return tracing::error!(%error, "console cannot be served"),
            };
            let serving = lariat_http::serve("the console", listener, router, end.clone());
            // The server ends when all factories have stopped, or when `shutdown` cancels the same token.
            let ended = async {
                end.run_until_cancelled(members.ended()).await;
                end.cancel();
            };
            let sampling = end.run_until_cancelled(sample(sampled));
            tokio::join!(serving, ended, sampling);
        }));
        tasks.close();
        tracing::info!(%address, "console is listening");
        Self {
            address,
            state,
            tasks,
            stop,
        }
    }

    /// Returns the address that the server listens on, with its actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds a factory or an operator under a context id.
    ///
    /// See [`Console::with`](super::Console::with). If the server has ended with its other factories, this does
    /// nothing.
    pub fn add(&self, context: &str, observed: &impl Observed) {
        observed.join(context, &self.state.members, &mut None);
        self.state.remember_changes();
    }

    /// Ends the server, and waits until it has ended.
    ///
    /// Streams end immediately, running requests within ten seconds; then all connections are closed. Further calls
    /// wait for the same end.
    ///
    /// # Cancel safety
    ///
    /// The server begins to end with the first poll. Dropping the future ends only the wait.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        self.ended().await;
    }

    /// Waits until the server has ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future changes nothing.
    pub async fn ended(&self) {
        self.tasks.wait().await;
    }
}

/// Takes samples at regular intervals, for ever.
async fn sample(state: Arc<ServerState>) {
    let mut ticks = time::interval(PERIOD);
    // After a pause of the process there is nothing to make up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        state.samples.take(&state.members);
    }
}

impl fmt::Debug for ConsoleServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleServer")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
