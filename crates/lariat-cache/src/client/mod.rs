//! Clients: connecting to a cluster, and one handle per kind.

mod connect;
mod shared;

pub use connect::{ConnectError, connect, from_kubeconfig};
pub use shared::{KindClient, SharedClientFactory};
