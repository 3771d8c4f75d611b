//! Termination signals.

use std::future::pending;

/// Waits for Ctrl-C or for SIGTERM, which Kubernetes sends.
///
/// From the first poll on these signals no longer terminate the process. After the first signal, the next one exits
/// immediately with code 1, as controller-runtime's `SetupSignalHandler` does, so that a user need not wait for
/// handlers that hang. Both are logged.
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
pub async fn termination() {
    signalled().await;
    tracing::info!("received a termination signal, shutting down; the next one exits immediately");
    #[allow(
        clippy::disallowed_methods,
        reason = "it belongs to the process and ends with it"
    )]
    tokio::spawn(async {
        signalled().await;
        tracing::warn!("received a second termination signal, exiting immediately");
        std::process::exit(1);
    });
}

async fn signalled() {
    let interrupt = async {
        // If no handler can be installed, Ctrl-C terminates the process, which is what was asked for.
        if tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupt => {}
        () = terminate() => {}
    }
}

#[cfg(unix)]
async fn terminate() {
    use tokio::signal::unix::{SignalKind, signal};

    match signal(SignalKind::terminate()) {
        Ok(mut stream) => drop(stream.recv().await),
        Err(_) => pending().await,
    }
}

#[cfg(not(unix))]
async fn terminate() {
    pending().await
}
