//! The types that most programs name, for `use lariat::prelude::*`.
//!
//! ```
//! use lariat::prelude::*;
//!
//! async fn log(cx: Context<Metadata>) -> HandlerResult {
//!     println!("{} because {}", cx.key(), cx.causes());
//!     Ok(Outcome::done())
//! }
//! # let _ = log;
//! ```

pub use crate::{
    Cache, Cause, Context, ControllerOptions, Enqueue, Gvk, Handler, HandlerError, HandlerOptions,
    HandlerResult, Metadata, ObjectKey, Outcome, Predicate, Priority, Registration, Relation,
    SharedController, SharedControllerFactory,
};
pub use kube::Client;
pub use kube::api::DynamicObject;
#[cfg(feature = "operator")]
pub use lariat_operator::{CachedApi, Desired, Event, Operator, Reconcile};
