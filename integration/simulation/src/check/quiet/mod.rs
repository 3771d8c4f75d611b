//! Rest: without faults and events, nothing waits, and unused kinds are gone.

mod quiet;

pub(super) use quiet::{Counters, EmptyQueues, KindsInUse};
