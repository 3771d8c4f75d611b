//! The signal to end.

use std::future::pending;

/// The exit code of an interrupted process, as in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs a future until it is done or the process gets Ctrl-C or SIGTERM.
///
/// Either way the next such signal ends the process at once.
pub(crate) async fn until_asked<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        // Polled first, so that the handler is installed before the work prints that it is ready.
        () = asked() => None,
        done = work => Some(done),
    }
}

/// Waits for the cleanup at the end; a second signal ends the wait.
pub(crate) async fn unless_asked_again(ending: impl Future<Output = ()>) {
    if until_asked(ending).await.is_none() {
        // Not a return: the runtime would wait for its blocking tasks at its end.
        std::process::exit(INTERRUPTED.into());
    }
}

async fn asked() {
    let interrupt = async {
        // Without a handler, Ctrl-C ends the process, which is what the user wanted.
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
