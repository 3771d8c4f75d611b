//! Leader election, sharding and fenced clients on Kubernetes leases.
//!
//! An [`Elector`] acquires, renews and releases a [`Lease`] as client-go's leader election does. Its [`Leadership`]
//! shows whether this process leads, and creates clients that [write only while it does](Leadership::fence). A
//! [`RingMember`] shares the keys among several replicas instead: its [`Shards`] show which keys belong to this
//! process. Programs on `lariat-controller` do not use these types directly: `FactoryBuilder::leader_election` takes a
//! [`Lease`], and `FactoryBuilder::sharding` a [`Sharding`].
//!
//! # How two leaders at a time are avoided
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
//! The leader counts from the moment at which it sent its last answered renewal. A process on standby counts from the
//! moment at which it saw that renewal. So a delayed message only makes the standby wait longer, and no clock is
//! compared with another.
//!
//! One case remains: a request that the network delays for more than the 5 seconds between the two deadlines.
//! Kubernetes checks no lease when it commits a write. A write that must not mix with those of the next leader should
//! carry a resource version too.
//!
//! # Requests
//!
//! A leader sends one update per retry period, which is 30 per minute by default. A process on standby keeps one watch
//! open.

mod clock;
mod config;
mod error;
mod record;
mod request;

mod election;

mod elector;
mod leadership;
mod term;

mod fence;

mod ring;

pub use config::Lease;
pub use elector::Elector;
pub use error::{Fenced, LeaseError};
pub use leadership::{Leadership, LeadershipState, LeaseStatus};
pub use ring::{Gained, Gains, Permit, RingMember, ShardKey, Sharding, Shards, Share};
pub use term::Term;
