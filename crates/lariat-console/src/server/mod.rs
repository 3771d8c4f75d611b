//! The server: settings, routes, answers.

mod actions;
mod api_routes;
mod console;
mod error;
mod events;
mod exposition;
mod handle;
mod overview;
mod refusal;
mod routes;
mod serve;
mod state;

pub use console::{Console, LogFilter};
pub use error::ServeError;
pub use handle::ConsoleServer;
pub use serve::Serve;
