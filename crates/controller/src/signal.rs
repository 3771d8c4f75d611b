//! Termination signals of the process.

use std::future::pending;

/// Waits for the next Ctrl-C or SIGTERM, which Kubernetes sends.
///
/// From the call on these signals no longer terminate the process (on Windows: from the first poll on), not even after
/// the future was dropped. A program that ends at the first one and exits at the second is easier with
/// `lariat::termination`.
///
/// ```no_run
/// # async fn work() {}
/// # async fn example() {
/// tokio::select! {
///     () = lariat::controller::termination_signal() => println!("interrupted"),
///     () = work() => println!("done"),
/// }
/// # }
/// ```
///
/// # Panics
///
/// If called outside a tokio runtime with I/O enabled.
///
/// # Cancel safety
///
/// A signal that arrived before the future was dropped is not seen by the next call.
#[cfg(unix)]
pub fn termination_signal() -> impl Future<Output = ()> + Send + 'static {
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

/// Waits for the next Ctrl-C.
///
/// From the first poll on Ctrl-C no longer terminates the process.
///
/// # Panics
///
/// If called outside a tokio runtime with I/O enabled.
///
/// # Cancel safety
///
/// A signal that arrived before the future was dropped is not seen by the next call.
#[cfg(not(unix))]
pub async fn termination_signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
}
