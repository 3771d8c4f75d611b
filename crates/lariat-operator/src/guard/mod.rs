//! Guards, which limit what handlers write, and plans of what they would write.

mod budget;
mod gate;
mod guard;
mod plan;
mod refused;
mod rules;
mod state;
#[cfg(test)]
mod tests;
mod window;

pub use budget::Budget;
pub(crate) use gate::{announce, judge};
pub use guard::Guard;
pub(crate) use plan::{Book, dry_run};
pub use plan::{Plan, PlannedWrite};
pub use state::{GuardState, Trip};
