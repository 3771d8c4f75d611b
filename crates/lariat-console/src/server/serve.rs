//! Serves what a factory or an operator does.

use super::console::Console;
use super::error::ServeError;
use super::handle::ConsoleServer;
use super::observed::Observed;

/// Serves a console: implemented by `SharedControllerFactory`, and with the feature `operator` by `Operator`.
pub trait Serve: Observed {
    /// Listens on the console's address, and serves metrics, probes and the console of this factory.
    ///
    /// Listening begins before this returns, so probes answer while caches sync. The server ends when the factory has
    /// stopped, or when its last clone is dropped; it does not keep the factory alive, and goes on if the returned
    /// handle is dropped. A factory that is started again has to be served again.
    ///
    /// # Errors
    ///
    /// The address cannot be listened on, or there is no tokio runtime.
    fn serve(&self, console: Console) -> Result<ConsoleServer, ServeError>;
}

impl<T: Observed> Serve for T {
    fn serve(&self, console: Console) -> Result<ConsoleServer, ServeError> {
        console.with("", self).start()
    }
}
