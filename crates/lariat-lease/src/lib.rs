//! Leader election and fenced clients on Kubernetes leases.
//!
//! An [`Elector`] acquires, renews and releases a [`Lease`] as client-go's leader election does. Its [`Leadership`]
//! shows whether this process leads, and creates clients that [write only while it does](Leadership::fence). Programs
//! on `lariat-controller` need neither directly: `FactoryBuilder::leader_election` takes the lease.
//!
//! # How two leaders are avoided
//!
//! ```text
//!            renewal sent            renew deadline          lease duration
//!                 │                        │                       │
//! leader ─────────●───────────────────────■┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
//!                 │     10 s              │ calls dropped, writes refused
//! server ─────────┼─●  committed          │
//!                 │ │                     │
//! standby ────────┼─┼─● seen to change ───┼───────────── 15 s ─────●─ takes over
//! ```
//!
//! The leader counts from the moment at which it sent its last answered renewal, a process on standby from the moment
//! at which it saw that renewal. So a delay on the way only makes the latter wait longer. No clock is compared with
//! another. What remains is a request that the network delays for longer than the 5 seconds between the two marks:
//! Kubernetes checks no lease when it commits a write. A write that must never meet one of the next leader should carry
//! a resource version as well.
//!
//! # Requests
//!
//! A leader sends one update every retry period (30 a minute); a process on standby has one watch open.

mod clock;
mod config;
mod error;
mod record;
mod request;

mod election;

mod elector;
mod leadership;

mod fence;

mod ring;

pub use config::Lease;
pub use elector::Elector;
pub use error::LeaseError;
pub use fence::Fenced;
pub use leadership::{Leadership, LeaseStatus, Standing};
pub use ring::{Permit, RingMember, ShardKey, Sharding, Shards, Share, WantedValues};
