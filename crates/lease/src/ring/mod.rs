//! Sharding: a ring of members, each with a lease of its own, that share the keys.
//!
//! # Why a key has at most one holder
//!
//! There is no coordinator. A new member creates its lease first and then lists the leases of the ring. So of two
//! members that join at the same time, at least one sees the other.
//!
//! A member that sees a new one hands over the keys that now belong to the new member. It admits no more calls for
//! them, waits for the running calls, and then writes the name of the new member into its own lease: the
//! *acknowledgement* (`ack`). The new member handles its first key when all members that it sees have acknowledged it.
//! A member that it does not see has joined later and waits for its acknowledgement.
//!
//! ```text
//! a  ──renew──renew──┬─ sees c ── drains c's keys ── ack c ──renew──▶
//! b  ──renew──renew──┼─ sees c ─ drains ─ ack c ──renew──renew──────▶
//! c      creates its lease, lists a and b ─────────── joined: handles its share
//! ```
//!
//! A member leaves by releasing its lease after its calls have ended; its keys are free immediately. A member that dies
//! stops renewing its lease. Its own time ends a renew deadline after it sent its last answered renewal. Another member
//! takes the lease away a lease duration after it saw that renewal, by an update that conflicts with any later renewal.
//!
//! # Modules
//!
//! [`RingMember`] runs `term`, the task of one membership, which carries out what `state` decides: a state machine of
//! what was observed (`members`), of the own lease and of the hand-over. `observer` lists and watches the leases, and
//! `lease` sends the requests. [`Share`] assigns keys to members, `gate` admits calls, [`Gains`] tells which keys to
//! enqueue, and [`Shards`] is what the rest of the program sees.

mod config;
mod gains;
mod gate;
mod lease;
mod member;
mod members;
mod observer;
mod record;
mod shards;
mod share;
mod state;
mod term;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod state_tests;

pub use config::Sharding;
pub use gains::Gains;
pub use gate::Permit;
pub use member::RingMember;
pub use shards::Shards;
pub use share::{Gained, ShardKey, Share};
