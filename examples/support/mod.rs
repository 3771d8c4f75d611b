//! What the examples share: a cluster to run on, and readable output.

mod console;
mod options;
mod place;
mod setup;
mod stage;
mod table;

pub use console::{Paint, error_exit, hush, log_errors, output_closed, paint, say, tell};
pub use options::{Flag, Options};
pub use place::Place;
pub use setup::{delete, ensure, ensure_namespace, unique};
pub use stage::{About, RUN, Stage, perform, perform_with};
pub use table::Table;
