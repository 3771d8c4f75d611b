//! Termination signals.

use std::future::pending;

/// Waits for Ctrl-C or for SIGTERM, which Kubernetes sends.
///
/// From the call on these signals no longer terminate the process (on Windows: from the first poll on). After the first
/// signal, the next one exits immediately with code 1, as controller-runtime's `SetupSignalHandler` does, so that a user
/// need not wait for handlers that hang. Both are logged.
///
/// ```no_run
/// # async fn example(factory: lariat::SharedControllerFactory) -> Result<(), lariat::controller::RunError> {
/// factory.run(5, lariat::termination()).await
/// # }
/// ```
///
/// # Panics
///
/// If called outside a tokio runtime with I/O and time enabled.
///
/// # Cancel safety
///
/// A signal that arrived before the future was dropped is not seen by the next call.
pub fn termination() -> impl Future<Output = ()> + Send + 'static {
    let first = signalled();
    async {
        first.await;
        tracing::info!(
            "received a termination signal, shutting down; the next one exits immediately"
        );
        let second = signalled();
        #[allow(
            clippy::disallowed_methods,
            reason = "it belongs to the process and ends with it"
        )]
        tokio::spawn(async {
            second.await;
            tracing::warn!("received a second termination signal, exiting immediately");
            std::process::exit(1);
        });
    }
}

/// Installs the handlers, and returns a future of the next signal.
#[cfg(unix)]
fn signalled() -> impl Future<Output = ()> + Send + 'static {
    use tokio::signal::unix::{SignalKind, signal};

    // If a handler cannot be installed, its signal terminates the process, which is what was asked for.
    let [interrupt, terminate] =
        [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok());
    async {
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
        }
    }
}

#[cfg(unix)]
async fn received(signals: Option<tokio::signal::unix::Signal>) {
    match signals {
        Some(mut signals) => drop(signals.recv().await),
        None => pending().await,
    }
}

#[cfg(not(unix))]
async fn signalled() {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
}
