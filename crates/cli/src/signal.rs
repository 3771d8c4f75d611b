//! The signal to end.

use lariat_controller::termination_signal;

/// The exit code of an interrupted process, as in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs a future until it is done or the process gets Ctrl-C or SIGTERM.
///
/// Afterwards such signals no longer end the process; [`unless_asked_again`] heeds the next one.
pub(crate) async fn until_asked<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        // Its handlers are installed before the work prints that it is ready (on Windows by the first poll).
        () = termination_signal() => None,
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
