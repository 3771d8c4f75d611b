//! Rest: when faults have ended and nothing happens, nothing waits, and what is not in use is gone.

mod quiet;

pub(super) use quiet::{Counters, EmptyQueues, KindsInUse};
