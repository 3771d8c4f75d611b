//! The operator: a name on a factory, from start to stop.

mod crds;
mod events;
mod lifecycle;
mod operator;
mod permissions;
mod plan;
mod remembered;

pub use lifecycle::OperatorError;
pub use operator::Operator;
