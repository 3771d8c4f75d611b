//! The signal to end.

use std::future::pending;

/// Waits until the process is asked to end: Ctrl-C, or SIGTERM, which is what Kubernetes sends.
///
/// From the first poll on the signals no longer end the process by themselves. After the first of them
/// the next ends the process at once, with exit code 1, as controller-runtime's `SetupSignalHandler`
/// does: whoever asks twice does not want to wait for handlers that hang. Both are logged.
///
/// # Panics
///
/// Outside a tokio runtime with I/O and time enabled.
///
/// # Cancel safety
///
/// A signal that came before the future was dropped is not seen by the next one.
pub async fn termination() {
    signalled().await;
    tracing::info!("a signal asks the program to end; the next one ends it at once");
    #[allow(
        clippy::disallowed_methods,
        reason = "it belongs to the process and ends with it"
    )]
    tokio::spawn(async {
        signalled().await;
        tracing::warn!("a second signal ends the program at once; what is under way is cut off");
        std::process::exit(1);
    });
}

async fn signalled() {
    let interrupt = async {
        // Without a handler for Ctrl-C the process ends by it, which is what was asked for.
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
