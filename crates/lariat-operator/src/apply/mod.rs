//! Applies the objects that an owner wants, and prunes the others.
//!
//! A set is the objects of one owner under one name, applied by one operator. Its members have three labels,
//! `lariat.dev/owner-uid`, `lariat.dev/operator` and `lariat.dev/set`, and where it is valid an owner reference. The
//! labels of ApplySets (KEP-3659) do not fit: there a parent has one set, known by the parent's name, which a recreated
//! parent would inherit, and the parent needs labels that name a tool. Taken over from there is the record of the
//! members' kinds on the owner, which is written before the first object of a kind exists.
//!
//! A call runs through `call`: `desired` → `resolve` (kinds, labels, references, hash) → `kinds` (the record on the
//! owner) → `staged` (step by step) → `object` (read, check, send, rank by rank as in `order`) → `pruning`. `memory` knows
//! what needs no request; for a process that has just started, `drift` finds out. `dry_run` makes a `plan`.
//!
//! **Invariant:** an object that is as wanted is not sent, whichever process applied it; one that others changed is.
//!
//! **Invariant:** only the very state that was read is pruned, and only if it is the set's: by its labels, its
//! controller, and its entry of our field manager.

mod call;
mod dependent;
mod desired;
mod drift;
mod dry_run;
mod error;
mod kinds;
mod marks;
mod memory;
mod meta;
mod methods;
mod object;
mod order;
mod plan;
mod prune;
mod pruning;
mod report;
mod resolve;
mod run;
mod send;
mod set;
mod staged;
mod step;
mod waiting;

pub use dependent::Dependent;
pub use desired::Desired;
pub use error::{ApplyError, FieldConflict, ObjectError, ObjectFailure};
pub(crate) use memory::Memory;
pub use plan::{PlanStep, PlannedAction, SetPlan};
pub use report::{Action, Applied, AppliedObject, LeftAlone};
pub use set::{Apply, Immutable};
pub use step::Step;
pub use waiting::Waiting;
