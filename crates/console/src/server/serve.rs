//! Serves a console for a factory or an operator.

use super::console::Console;
use super::error::ServeError;
use super::handle::ConsoleServer;
use super::observed::Observed;

/// Serves a console for a factory or an operator.
///
/// ```no_run
/// use lariat::console::{Console, Serve};
/// use lariat::SharedControllerFactory;
///
/// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
/// // Before the start, so that probes respond while caches sync.
/// factory.serve(Console::on("127.0.0.1:9090"))?;
/// factory.run(5, std::future::pending::<()>()).await?;
/// # Ok(()) }
/// ```
pub trait Serve: Observed {
    /// Listens on the console's address, and serves the console of this factory.
    ///
    /// The server listens before this returns, so probes respond while caches sync. It ends when the factory has
    /// stopped, or when the last clone of the factory is dropped. The server does not keep the factory alive, and
    /// dropping the returned handle does not end it. A factory that is started again has to be served again.
    ///
    /// # Errors
    ///
    /// It is not possible to listen on the address, or there is no tokio runtime.
    fn serve(&self, console: Console) -> Result<ConsoleServer, ServeError>;
}

impl<T: Observed> Serve for T {
    fn serve(&self, console: Console) -> Result<ConsoleServer, ServeError> {
        console.with("", self).start()
    }
}
