//! Builds operators on shared controllers: reconcilers, finalizers, status, applied objects, Events.
//!
//! ```text
//! Operator ──reconciler──▶ a named handler of the kind's shared controller
//!    │                        │ called with a Reconcile: the object, the causes, and methods that write
//!    │                        ▼
//!    │            finalizer ▸ reconcile ▸ apply ▸ status ▸ events
//!    └── at the start: installs CRDs, checks permissions
//! ```
//!
//! An [`Operator`] is a name on a [`SharedControllerFactory`](lariat_controller::SharedControllerFactory). It adds what
//! operators need beyond handlers: an event recorder, CRDs, and RBAC rules derived from what is registered. A
//! [`Reconciler`] is a handler of one kind, which is called with a [`Reconcile`]. All reconcilers run on the factory:
//! two reconcilers of Pods share one watch, with each other and with all other handlers.
//!
//! Where to start reading: [`Reconciler`] for finalizers, owned kinds and retries; [`Reconcile::apply`] for objects
//! that an owner should have; [`Reconcile::set_status`] and [`ConditionUpdate`] for status; [`Guard`] and
//! [`Operator::plan_only`] for safety; [`Operator::manifests`] for RBAC; [`CachedApi`] for reads and writes of other
//! kinds.
//!
//! ```
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use lariat::{Desired, HandlerResult, Operator, Outcome, Reconcile, SharedControllerFactory};
//! use serde_json::json;
//!
//! /// Applies a ConfigMap with the name of each Deployment; it is deleted with the Deployment.
//! async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
//!     let name = cx.key().name();
//!     let config = json!({
//!         "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"of": name},
//!     });
//!     cx.apply(Desired::new().with_value(config)).await?;
//!     Ok(Outcome::done())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let cluster = lariat::cluster::Cluster::builder().start().await?;
//! # let client = cluster.client();
//! let factory = SharedControllerFactory::builder(client).build();
//! let operator = Operator::new("names", &factory);
//! let (deployments, configs) = (factory.for_object::<Deployment>(), factory.for_object::<ConfigMap>());
//! operator.reconciler("names", &deployments).owns(&configs).register(reconcile)?;
//! operator.start(5).await?;
//! operator.stop().await?;
//! # Ok(()) }
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `apply` (default) | sets of objects that are applied and pruned: [`Reconcile::apply`] |
//! | `crd` (default) | CRDs that are installed at the start: [`Operator::installs`] |
//! | `events` (default) | Events: [`Reconcile::event`] |
//! | `guard` (default) | write budgets and plans: [`Reconciler::guard`], [`Operator::plan_only`]; enables `events` |
//! | `rbac` (default) | the permissions that an operator needs: [`Operator::rules`] |

#![cfg_attr(
    not(feature = "default"),
    allow(
        dead_code,
        unused_imports,
        reason = "helpers of which each serves one feature"
    )
)]

mod operator;
mod reconciler;

#[cfg(feature = "apply")]
mod apply;
#[cfg(feature = "crd")]
mod crd;
#[cfg(feature = "events")]
mod events;
mod finalizer;
#[cfg(feature = "guard")]
mod guard;
mod owner;
#[cfg(feature = "rbac")]
mod rbac;
mod status;

mod api;
mod reconcile;

#[cfg(any(feature = "apply", feature = "guard"))]
mod diff;
mod wire;

mod clock;
mod names;
mod needs;
mod readiness;
mod refusal;
mod yaml;

pub use api::{CachedApi, Mutated, Mutation};
#[cfg(feature = "apply")]
pub use apply::*;
#[cfg(feature = "crd")]
pub use crd::*;
#[cfg(any(feature = "apply", feature = "guard"))]
pub use diff::FieldChange;
#[cfg(feature = "events")]
pub use events::{Event, EventApi, EventOptions, EventStatus, Recorder};
pub use finalizer::{Finalizer, FinalizerNameError, FinalizerRemoval, FinalizerRemovalError};
#[cfg(feature = "guard")]
pub use guard::{Budget, Guard, GuardState, Plan, PlannedWrite, Trip};
pub use needs::Rule;
pub use operator::{Operator, OperatorError, WeakOperator};
pub use owner::{Owner, OwnerError};
#[cfg(feature = "rbac")]
pub use rbac::{AccessError, Manifests, Permission};
pub use readiness::Readiness;
pub use reconcile::Reconcile;
pub use reconciler::{Poll, Polled, Reconciler, ReconcilerError, ReconcilerRegistration, Retry};
pub use refusal::GuardError;
pub use status::{ConditionError, ConditionUpdate, Conditions, StatusError, StatusWriter};
pub use wire::ApiError;
pub use yaml::yaml;
