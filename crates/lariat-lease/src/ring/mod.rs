//! Sharding: a ring of members, each with a lease of its own, that share the keys.
//!
//! # How a key has one holder at any time
//!
//! There is no coordinator. A member creates its lease, and then lists the leases of the ring: of two members that join
//! at the same time, at least one sees the other. Every member that sees a new one gives up the keys that now belong to
//! it: it admits no more of them, waits for the running calls, and then writes the new member's name into its own lease
//! (`ack`). A member handles its first key when all members it sees have done so. A member that it does not see has
//! joined later, and waits for its ack.
//!
//! ```text
//! a  ──renew──renew──┬─ sees c ── drains c's keys ── ack c ──renew──▶
//! b  ──renew──renew──┼─ sees c ─ drains ─ ack c ──renew──renew──────▶
//! c      creates its lease, lists a and b ─────────── joined: handles its share
//! ```
//!
//! A member leaves by releasing its lease once its calls have ended; its keys are free immediately. A member that dies
//! stops renewing its lease: its own time has ended a renew deadline after its last answered renewal was sent, and
//! another member takes its lease away a lease duration after it saw that renewal, by an update that conflicts with a
//! later renewal.

mod config;
mod gate;
mod label;
mod lease;
mod member;
mod members;
mod observer;
mod record;
mod shards;
mod share;
mod term;

pub use config::Sharding;
pub use gate::Permit;
pub use member::RingMember;
pub use shards::{Shards, WantedValues};
pub use share::{ShardKey, Share};
