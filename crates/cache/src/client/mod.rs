//! Shared clients: one handle per kind, gates before writes, own writes behind them.
//!
//! `shared` is the factory of clients, with one handle per kind (`kind`) and identity. A request goes through
//! `observed`: a `gate` decides about a write, which is read from its path (`write`, `pending`, `dry_run`), and the
//! answer is applied to the caches. Connections, credentials, retries and fences are lariat-client's.

mod dry_run;
mod gate;
mod kind;
mod observed;
mod pending;
mod shared;
mod span;
mod write;

pub use gate::{GateDecision, WriteGate, WriteReceipt, WriteResult};
pub use kind::KindClient;
pub use pending::{FollowedBy, PendingWrite};
pub use shared::SharedClientFactory;
pub use write::WriteVerb;
pub(crate) use write::{KindCache, OF_THE_OBJECT, Sent, Write, WriteObserver};
