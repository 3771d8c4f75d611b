//! What the examples share: a cluster to run on, and readable output.

mod console;
mod place;
mod setup;
mod table;

pub use console::{Paint, error_exit, log_errors, output_closed, paint, say};
pub use place::Place;
pub use setup::{delete, ensure, ensure_namespace, unique};
pub use table::Table;
