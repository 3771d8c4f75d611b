//! One reconcile call, its operator, and the state that features keep for both.
//!
//! [`Reconcile`] is the argument of a reconciler. Behind it are the `call`, which has the newest state of the object,
//! and the `operator`. Both have `extensions` for the state of features. `callback` erases the type of the user's
//! function, and `claimed` finds conflicts between reconcilers.

mod call;
mod callback;
mod claimed;
mod extensions;
mod operator;
mod reconcile;

pub(crate) use call::{CallState, OfReconciler};
pub(crate) use callback::Callback;
pub(crate) use claimed::Claim;
pub(crate) use operator::OperatorState;
pub use reconcile::Reconcile;
