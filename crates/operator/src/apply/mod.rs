//! Applies the objects that an owner wants, and prunes the others.
//!
//! A set is the objects of one owner under one name, applied by one operator. Its members have the three labels
//! `lariat.dev/owner-uid`, `lariat.dev/operator` and `lariat.dev/set`, the annotation `lariat.dev/owner`, and an owner
//! reference where one is valid.
//!
//! A call goes through these modules in order:
//!
//! 1. `desired`, `dependent`, `step`: the wanted objects, with options and steps (`adding` has their common methods).
//! 2. `resolve`: looks up the kinds, and adds labels, owner reference and hash.
//! 3. `kinds`: records the kinds of the set on the owner.
//! 4. `staged`: applies the objects step by step, and within a step in the `order` of their kinds.
//! 5. `object` and `write`: read and send one object. `claim` decides whether it may be written, `marking` writes labels and
//!    owner reference alone. `memory` knows which objects need no request; for a process that has just started, `drift`
//!    decides it from the object.
//! 6. `prune` and `pruning`: find and delete the objects that are no longer wanted, in `kinds_searched`; `siblings` and
//!    `moves` leave those to other sets that want them.
//!
//! The result is a `report` or an `error`. A `plan` is the same with dry runs.
//!
//! The labels of ApplySets (KEP-3659) do not fit. There a parent has one set, which is identified by the parent's name,
//! so that a recreated parent would inherit it, and the parent needs labels that name a tool. Taken over from there is
//! the record of the members' kinds on the owner, which is written before the first object of a kind exists.
//!
//! **Invariant:** an object that is as wanted is not sent, whichever process applied it. One that others changed is
//! sent.
//!
//! **Invariant:** only the very state that was read is pruned, and only if it belongs to the set by its labels, its
//! controller, and its entry of our field manager.

mod adding;
mod call;
mod claim;
mod dependent;
mod desired;
mod drift;
mod error;
mod kinds;
mod kinds_searched;
mod marking;
mod marks;
mod memory;
mod meta;
mod methods;
mod moves;
mod object;
mod order;
mod plan;
mod present;
mod prune;
mod pruning;
mod report;
mod resolve;
mod run;
mod send;
mod set;
mod siblings;
mod staged;
mod step;
mod waiting;
mod write;

pub use dependent::Dependent;
pub use desired::Desired;
pub use error::{ApplyError, FieldConflict, ObjectError, ObjectFailure};
pub(crate) use memory::Memory;
pub use plan::{PlanStep, PlannedAction, SetPlan};
pub use report::{Action, Applied, AppliedObject, Skipped};
pub use set::{Apply, Immutable};
pub use step::Step;
pub use waiting::Waiting;
