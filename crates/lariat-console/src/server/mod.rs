//! The server: settings, routes, answers.

mod actions;
mod answer;
mod api_routes;
mod console;
mod error;
mod events;
mod exposition;
#[cfg(feature = "operator")]
mod guards;
mod handle;
mod observed;
mod refusal;
mod routes;
mod serve;
mod settings;
mod state;

pub use console::Console;
pub use error::ServeError;
pub use handle::ConsoleServer;
pub use observed::Observed;
pub use serve::Serve;
pub use settings::LogFilter;
