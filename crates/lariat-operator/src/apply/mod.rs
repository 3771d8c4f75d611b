//! Apply: the objects an owner wants, and no others.
//!
//! A set is the objects of one owner under one name, applied by one operator. Its members have three labels,
//! `lariat.dev/owner-uid`, `lariat.dev/operator` and `lariat.dev/set`, and where that is legal a reference to the
//! owner. The labels of ApplySets (KEP-3659) do not fit: those have one set for each parent, known by the parent's
//! name, so that one that is made anew would inherit, and labels on the parent that call for a tool. What is taken
//! over from there is to note the kinds of the members on the owner, before the first object of a kind exists.
//!
//! A call goes through: `call`: `desired` → `resolve` (kinds, labels, references, hash) → `kinds` (the note on the owner)
//! → `object` (look, claim, send, rank by rank as in `order`) → `prune`. What needs no request is known from `memory`,
//! and to a process that has just started from `drift`; `dry_run` makes a `plan`.
//!
//! **Invariant:** what is as wanted is not sent, whichever process applied it; what others changed is.
//!
//! **Invariant:** nothing is pruned but the very state that was looked at and found to be ours: by its labels, by
//! its controller, and by the entry of our field manager.

mod call;
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
mod owner;
mod plan;
mod prune;
mod report;
mod resolve;
mod run;
mod send;
mod set;

pub use desired::Desired;
pub use error::{ApplyError, FieldConflict, ObjectError, ObjectFailure};
pub(crate) use memory::Memory;
pub use owner::OwnerError;
pub use plan::{PlanStep, PlannedAction, SetPlan};
pub use report::{Action, Applied, AppliedObject, LeftAlone};
pub use set::{Apply, Immutable};
