//! The HTTP server of a console.
//!
//! In reading order:
//!
//! 1. `console` and `settings` configure it; `observed` and `serve` connect it to factories and operators; `handle` is
//!    the running server.
//! 2. `state` is shared by all requests: it authorises them, limits their number, and builds the overview.
//! 3. `routes` serves page, metrics (`exposition`, `guards`) and probes; `api_routes` the JSON API, with `events` for
//!    the stream of overviews and `actions` for writes.
//! 4. `answer` and `refusal` are responses.

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
