//! The error of a console that cannot be served.

use std::io;

/// A console cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address is not one, or cannot be listened on: another program has the port, or the machine lacks the address.
    #[error(
        "the console cannot listen on {address}: choose another address, such as 127.0.0.1:0 for any free port"
    )]
    Listen {
        /// The address that was given.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// There is no tokio runtime to serve on.
    #[error("the console is served outside a tokio runtime")]
    NoRuntime,
}
