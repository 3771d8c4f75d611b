//! What most programs need.

pub use crate::{
    Cache, CachedApi, Cause, Context, ControllerOptions, Enqueue, Gvk, Handler, HandlerError,
    HandlerOptions, HandlerResult, Metadata, ObjectKey, Operator, Outcome, Predicate, Priority,
    Reconcile, Registration, Relation, SharedController, SharedControllerFactory,
};
pub use kube::Client;
pub use kube::api::DynamicObject;
pub use lariat_operator::{Desired, Event};
