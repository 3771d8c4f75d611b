//! Serves what a factory or an operator does.

use lariat_controller::SharedControllerFactory;
#[cfg(feature = "operator")]
use lariat_operator::Operator;

use super::console::Console;
use super::error::ServeError;
use super::handle::ConsoleServer;
use crate::members::Members;

/// Serves a console: implemented by `SharedControllerFactory`, and with the feature `operator` by `Operator`.
pub trait Serve: sealed::Join {
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

pub(crate) mod sealed {
    use super::Members;

    /// Becomes a member of a console.
    pub trait Join {
        /// Adds the factory under a context id; an operator names the program if that has no name yet.
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "the trait is sealed by it")]
        fn join(&self, context: &str, members: &Members, name: &mut Option<String>);
    }
}

impl Serve for SharedControllerFactory {
    fn serve(&self, console: Console) -> Result<ConsoleServer, ServeError> {
        console.with("", self).start()
    }
}

impl sealed::Join for SharedControllerFactory {
    #[allow(private_interfaces, reason = "the trait is sealed by it")]
    fn join(&self, context: &str, members: &Members, _: &mut Option<String>) {
        members.add(context, self);
    }
}

#[cfg(feature = "operator")]
impl Serve for Operator {
    fn serve(&self, console: Console) -> Result<ConsoleServer, ServeError> {
        console.with("", self).start()
    }
}

#[cfg(feature = "operator")]
impl sealed::Join for Operator {
    #[allow(private_interfaces, reason = "the trait is sealed by it")]
    fn join(&self, context: &str, members: &Members, name: &mut Option<String>) {
        members.add(context, self.factory());
        members.add_operator(self.downgrade());
        name.get_or_insert_with(|| self.name().to_owned());
    }
}
