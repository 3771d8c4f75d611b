//! The stage of the stories: a cluster to run on, a namespace, readable output, and the clean-up.

mod arguments;
mod cleanup;
mod cluster;
mod console;
mod definitions;
mod hints;
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
pub use console::{Paint, exit_code, hush, log_errors, paint, print_action, say};
pub use definitions::RUN;
pub use options::{Flag, Options};
pub use printed::{TIMEOUT, until_printed};
pub use replica::{
    ATTACHED, NAMESPACE, REPLICA, Replica, Replicas, lasting, perform_with_replicas,
};
pub use setup::{delete, ensure, merge};
pub use stage::{About, Stage, only_in, perform, perform_with};
pub use table::TextTable;
#[cfg(test)]
pub(crate) use testing::define;

use console::output_closed;
use definitions::{EXAMPLE, ensure_crd, remove_crd};
use printed::{forget, remember};
use setup::ensure_namespace;
