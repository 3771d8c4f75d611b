//! The error of starting a console's server.

use std::io;

/// The error of starting a console's server. Nothing is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The console cannot listen on the address.
    ///
    /// The text is not an address, the port is in use, or the machine does not have the address.
    #[error(
        "the console cannot listen on {address}: {}",
        match source.kind() {
            io::ErrorKind::InvalidInput => "expected ADDRESS:PORT, such as 127.0.0.1:9090",
            _ => "choose another address, such as 127.0.0.1:0 for any free port",
        }
    )]
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// There is no tokio runtime to serve on.
    #[error("the console must be started inside a tokio runtime")]
    NoRuntime,
}
