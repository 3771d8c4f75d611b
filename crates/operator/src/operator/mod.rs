//! The operator: a name on a factory, with everything that happens at its start and stop.
//!
//! [`Operator`] is in `operator`, and its start and stop are in `lifecycle`. Each feature adds methods in a module of
//! its own: `crds`, `events`, `permissions` and `plan`. A feature that is off has a twin with empty methods
//! (`…_off.rs`), so that the callers have no conditions.

#[cfg(feature = "crd")]
mod crds;
#[cfg(not(feature = "crd"))]
#[path = "crds_off.rs"]
mod crds;
#[cfg(feature = "events")]
mod events;
#[cfg(not(feature = "events"))]
#[path = "events_off.rs"]
mod events;
mod lifecycle;
mod operator;
#[cfg(feature = "rbac")]
mod permissions;
#[cfg(not(feature = "rbac"))]
#[path = "permissions_off.rs"]
mod permissions;
#[cfg(feature = "guard")]
mod plan;
mod table_sizes;
mod weak;

pub use lifecycle::OperatorError;
pub use operator::Operator;
pub use weak::WeakOperator;
