//! What the examples share: a cluster to run on, and readable output.

mod arguments;
mod cluster;
mod console;
mod definitions;
mod farewell;
mod hints;
mod kubelet;
mod options;
mod printed;
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

pub use arguments::arguments;
pub use cluster::ExampleCluster;
pub use console::{Paint, error_exit, hush, log_errors, output_closed, paint, print_action, say};
pub use definitions::{EXAMPLE, RUN, ensure_crd, remove_crd};
pub use options::{Flag, Options};
pub use printed::{TIMEOUT, forget, last_printed, remember, until_printed};
pub use replica::{
    ATTACHED, NAMESPACE, REPLICA, Replica, Replicas, lasting, perform_with_replicas,
};
pub use setup::{delete, ensure, ensure_namespace, merge, unique};
pub use stage::{About, Stage, perform, perform_with};
pub use table::TextTable;
#[cfg(test)]
pub(crate) use testing::define;
