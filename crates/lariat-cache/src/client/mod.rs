//! Clients: connecting to a cluster, and one handle per kind.
//!
//! `connect` reads a configuration (`kubeconfig`, `proxy`), `shared` is the factory of clients with one handle per kind.
//! A request goes through `observed` (identity, gate, own writes), `answer` (timeout, retries, fence) and `multiplex`,
//! which selects a connection:
//! HTTP/2 from the `pool`, or HTTP/1.1 with `liveness` tests, for watches `driven` by their readers. `credentials` and
//! `exec` sign requests; `dial`, `tls` and `socket` open connections.

mod answer;
mod clock;
mod connect;
mod credentials;
mod dial;
mod driven;
mod exec;
mod gate;
mod identity;
mod kubeconfig;
mod liveness;
mod multiplex;
mod observed;
mod pem;
mod pool;
mod printed;
mod proxy;
mod request;
mod separate;
mod shared;
mod single;
mod socket;
mod span;
mod timed;
mod tls;
mod too_large;
mod url;
mod write;

#[cfg(feature = "fuzzing")]
pub(crate) use kubeconfig::fuzzing;

pub use answer::{is_missing, retry_after};
pub use connect::{
    ConnectError, connect, from_config, from_kubeconfig, from_kubeconfig_file, from_kubeconfig_text,
};
pub use gate::{FollowedBy, GateDecision, PendingWrite, WriteGate, WriteReceipt, WriteResult};
pub use identity::{ClientIdentity, IdentityError};
pub use multiplex::Http2;
pub(crate) use pool::Connection;
pub use shared::{KindClient, SharedClientFactory};
pub(crate) use single::Single;
pub use too_large::is_too_large;
pub use write::WriteVerb;
pub(crate) use write::{KindCache, OF_THE_OBJECT, Sent, Write, WriteObserver};
