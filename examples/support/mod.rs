//! What the examples share: a cluster to run on, and readable output.

mod arguments;
mod console;
mod definitions;
mod farewell;
mod hints;
mod options;
mod place;
mod replica;
#[cfg(test)]
pub(crate) mod roles;
mod setup;
mod stage;
mod table;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod told;

pub use arguments::arguments;
pub use console::{Paint, error_exit, hush, log_errors, output_closed, paint, say, tell};
pub use definitions::{EXAMPLE, RUN, ensure_crd, remove_crd};
pub use options::{Flag, Options};
pub use place::Place;
pub use replica::{
    ATTACHED, NAMESPACE, REPLICA, Replica, Replicas, lasting, perform_with_replicas,
};
pub use setup::{delete, ensure, ensure_namespace, merge, unique};
pub use stage::{About, Stage, perform, perform_with};
pub use table::Table;
#[cfg(test)]
pub(crate) use testing::define;
pub use told::{TIMEOUT, forget, last_told, remember, told};
