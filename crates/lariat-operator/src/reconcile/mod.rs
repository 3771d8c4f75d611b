//! A reconcile call, its operator, and the state that features keep for both.

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
