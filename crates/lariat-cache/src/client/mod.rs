//! Clients: connecting to a cluster, and one handle per kind.

mod connect;
mod gate;
mod identity;
mod multiplex;
mod observed;
mod shared;

pub use connect::{ConnectError, connect, from_config, from_kubeconfig};
pub use gate::{Admission, PendingWrite, WriteEnd, WriteGate, WriteReceipt, WriteVerb};
pub use identity::{ClientIdentity, IdentityError};
pub use multiplex::Http2;
pub(crate) use observed::{KindCache, OF_THE_OBJECT, Write, WriteObserver};
pub use shared::{KindClient, SharedClientFactory};
