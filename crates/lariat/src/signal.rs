//! Termination signals.

use crate::controller::termination_signal;

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
    let first = termination_signal();
    async {
        first.await;
        tracing::info!(
            "received a termination signal, shutting down; the next one exits immediately"
        );
        let second = termination_signal();
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
