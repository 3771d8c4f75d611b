//! One reconcile of one object, and what features find there: who the operator is, and what they keep.

mod call;
mod callback;
mod claimed;
mod extensions;
mod operator;
mod reconcile;

pub(crate) use call::CallState;
pub(crate) use callback::Callback;
pub(crate) use claimed::Claim;
pub(crate) use operator::OperatorState;
pub use reconcile::Reconcile;
