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

#[doc(no_inline)]
pub use crate::{
    Cache, Cause, Context, ControllerOptions, Enqueue, Gvk, Handler, HandlerError, HandlerOptions,
    HandlerResult, Metadata, ObjectKey, Outcome, Predicate, Priority, Registration, Relation,
    SharedController, SharedControllerFactory,
};
#[doc(no_inline)]
pub use kube::Client;
#[doc(no_inline)]
pub use kube::api::DynamicObject;
#[cfg(feature = "operator")]
#[doc(no_inline)]
pub use lariat_operator::{CachedApi, Desired, Event, Operator, Reconcile};
