//! Server-side apply, and the managers of fields.
//!
//! Every write is recorded in `metadata.managedFields`. An apply merges what its manager wants into the object, removes
//! what the manager wanted before, and conflicts where it would change fields of other managers.
//!
//! Source: `k8s.io/apimachinery/pkg/util/managedfields` and `sigs.k8s.io/structured-merge-diff/v6`.

mod atomics;
mod check;
mod differ;
mod entries;
mod error;
mod last_applied;
mod path;
mod scale;
mod set;
mod typed;
mod updater;
mod write;

#[cfg(test)]
mod tests;

pub use atomics::atomics;
pub use check::check_entries;
pub use differ::{differ, differ_outside};
pub use entries::{Manager, manager_name};
pub use error::{ApplyError, Conflict};
pub use scale::ScaleHandler;
pub use set::Set;
pub use write::Write;
