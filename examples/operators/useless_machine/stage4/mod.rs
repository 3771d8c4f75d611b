//! Stage 4: the machine has switches as separate objects, and puts down one at a time.
//!
//! Each call moves the cluster a step towards the machine's spec, from any state: it claims the switches with its
//! label, creates missing ones, deletes surplus ones, and flips one when it is time. Its writes are in the cache when
//! they return, so the next call counts correctly even if the watch is slow.

mod claim;
mod kinds;
mod scale;
mod workshop;

pub use kinds::{MACHINE, Machine, MachineSpec, MachineStatus, Switch, SwitchSpec, SwitchStatus};
pub use workshop::register;
