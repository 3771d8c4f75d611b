//! What operators are made of, on shared controllers: reconcilers, finalizers, status and conditions, sets
//! of objects that are applied, Events.
//!
//! ```text
//! Operator ──reconciler──▶ a named handler of the kind's shared controller
//!    │                        │ called with a Reconcile: the object, the causes, and ways to write
//!    │                        ▼
//!    │            finalizer ▸ reconcile ▸ apply ▸ status ▸ events
//!    └── at the start: definitions installed, permissions checked
//! ```
//!
//! An [`Operator`] adds a name, a recorder of Events and what it needs to be allowed to a
//! [`SharedControllerFactory`](lariat_controller::SharedControllerFactory). Everything runs on that factory: two
//! reconcilers over Pods share one watch, with each other and with every plain handler.
//!
//! ```
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
//! use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
//! use lariat_operator::{Desired, Operator, Reconcile};
//! use serde_json::json;
//!
//! /// Every Deployment gets a ConfigMap with its name, which goes with it.
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
//! # let cluster = lariat_cluster::Cluster::builder().start().await?;
//! # let client = cluster.client();
//! let factory = SharedControllerFactory::builder(client).build();
//! let operator = Operator::new("names", &factory);
//! let (deployments, configs) = (factory.for_object::<Deployment>(), factory.for_object::<ConfigMap>());
//! operator.reconciler("names", &deployments).owns(&configs).register(reconcile)?;
//! operator.start(5).await?;
//! operator.stop().await?;
//! # Ok(()) }
//! ```

mod lifecycle;
mod operator;

mod reconciler;

mod finalizer;
mod status;

mod apply;
mod events;

mod guard;

mod crd;
mod rbac;

mod api;
mod clock;
mod diff;
mod names;
mod remembered;
mod secrets;
mod wire;
mod yaml;

pub use api::{ApiError, CachedApi};
pub use apply::{
    Action, Applied, AppliedObject, Apply, ApplyError, Desired, FieldConflict, Immutable,
    LeftAlone, ObjectError, ObjectFailure, OwnerError, PlanStep, PlannedAction, SetPlan,
};
pub use crd::{
    DefinitionChange, DefinitionError, DefinitionOptions, DefinitionReport, Install, InstallError,
    Skew, ensure_definitions, with_definition_version,
};
pub use diff::FieldChange;
pub use events::{Event, EventApi, EventOptions, EventStatus, Recorder};
pub use finalizer::{Finalizer, FinalizerNameError, StripError, Stripped};
pub use guard::{Budget, Guard, GuardError, GuardState, Plan, PlannedWrite, Trip};
pub use lifecycle::OperatorError;
pub use operator::Operator;
pub use rbac::{AccessError, Manifests, Permission, Rule};
pub use reconciler::{Reconcile, Reconciler, ReconcilerError, ReconcilerRegistration, Retry};
pub use status::{ConditionError, ConditionUpdate, Conditions, StatusError, StatusWriter};
pub use yaml::yaml;
