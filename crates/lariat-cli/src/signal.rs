//! The signal to end.

use std::future::pending;

/// What a process ends with that was interrupted, as shells have it.
const INTERRUPTED: i32 = 130;

/// Runs a future until it is done or the process is asked to end, by Ctrl-C or SIGTERM.
///
/// Either way the next such signal ends the process at once.
pub(crate) async fn until_asked<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        // First, so that there is a handler before the work says that it is ready.
        () = asked() => None,
        done = work => Some(done),
    }
}

/// Waits for what is done when the process ends, but not if it is asked again.
pub(crate) async fn unless_asked_again(ending: impl Future<Output = ()>) {
    if until_asked(ending).await.is_none() {
        std::process::exit(INTERRUPTED);
    }
}

async fn asked() {
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
