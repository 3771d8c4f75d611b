//! Shared controllers for Kubernetes: one watch, one cache and one work queue per kind, however many
//! named handlers register and however much code enqueues directly.
//!
//! ```no_run
//! use k8s_openapi::api::core::v1::Pod;
//! use lariat::prelude::*;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let factory = SharedControllerFactory::builder(lariat::connect().await?).build();
//!     let pods = factory.for_object::<Pod>();
//!     pods.register_handler("log", |cx: Context<Pod>| async move {
//!         println!("{} {}: {}", cx.key(), if cx.object()?.is_some() { "is" } else { "was" }, cx.causes());
//!         Ok(Outcome::done())
//!     })?;
//!     Ok(factory.run(5, lariat::termination()).await?)
//! }
//! ```
//!
//! For operators begin with [`Operator`] and [`operator`](mod@operator): reconcilers, finalizers, status, sets of
//! objects that are applied, Events. For handlers begin with [`SharedControllerFactory`]; it gives out a
//! [`SharedController`] per kind, to which handlers are registered. [`Context`] is what a handler is called with, [`Outcome`] what it answers.
//!
//! | feature | adds |
//! |---|---|
//! | `rustls-tls` (default) | TLS by rustls and ring |
//! | `kube-runtime` | shared informers as streams and stores of kube-rs |
//! | `cluster` | `lariat::cluster`, a Kubernetes API server in memory |
//! | `sim` | `lariat::sim`, which runs whole programs against that server in virtual time, from one seed |
//! | `sql` | `lariat::sql`, the state of chosen kinds in SQLite, for queries and pages |
//! | `sql-http` | `lariat::sql::http`, which serves it over HTTP |
//! | `sql-postgres` | `lariat::sql::Postgres`, a database in which replicas share it |
//! | `metrics` | `lariat::metrics`, what is counted, in a registry of `prometheus-client` |

pub mod prelude;
mod signal;

pub use lariat_controller::{
    AllKinds, Call, CallRecord, Context, ControllerOptions, ControllerStatus, Ended, Enqueue,
    EnqueueError, FactoryBuilder, Fenced, FlightRecorder, Gate, Handler, HandlerError,
    HandlerOptions, HandlerResult, HandlerStatus, HandlerWrite, HotLoop, Ignore, KindsRegistration,
    Leadership, Lease, LeaseError, LeaseStatus, Middleware, Next, Outcome, Pattern, Predicate,
    RegisterError, Registration, Related, Relation, Resync, RetryAfter, RunError, RunRecord,
    Sentinel, ShardKey, Sharding, Shards, Share, SharedController, SharedControllerFactory,
    Standing, StartError, StopError, Terminal, Timeout, Tracing, Transaction, Unfinished,
};

pub use lariat_cache::{
    Cache, CachedObject, ClientIdentity, ConnectError, DecodeError, Filling, Http2, IdentityError,
    IndexError, KindOptions, KindStatus, MapperError, Metadata, MissingKind, Phase, Query,
    Selection, Storage, SyncError, Transform, View, connect, from_config, from_kubeconfig,
};

/// What operators are made of: reconcilers, finalizers, status, apply, Events.
///
/// ```no_run
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use lariat::prelude::*;
/// use serde_json::json;
///
/// /// Every Deployment gets a ConfigMap with its name, which goes with it.
/// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
///     let name = cx.key().name();
///     let config = json!({
///         "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"of": name},
///     });
///     cx.apply(Desired::new().with_value(config)).await?;
///     Ok(Outcome::done())
/// }
///
/// # async fn example() -> anyhow::Result<()> {
/// let factory = SharedControllerFactory::builder(lariat::connect().await?).build();
/// let operator = Operator::new("names", &factory);
/// let (deployments, configs) = (factory.for_object::<Deployment>(), factory.for_object::<ConfigMap>());
/// operator.reconciler("names", &deployments).owns(&configs).register(reconcile)?;
/// operator.run(5, lariat::termination()).await?;
/// # Ok(()) }
/// ```
pub mod operator {
    pub use lariat_operator::*;
}

#[doc(inline)]
pub use lariat_operator::{CachedApi, Operator, Reconcile, Reconciler};

pub use lariat_core::{
    Cause, Causes, Gvk, LabelSelector, Labels, ObjectKey, OwnerRef, RawObject, Remembered,
    ResourceKind, ResourceVersion, Scope, Uid, describe,
};

pub use lariat_cache::{Change, KindClient};
pub use lariat_core::SelectorError;
#[doc(inline)]
pub use lariat_core::clock;
pub use lariat_queue::{Ageing, Priority, RateLimiter};
/// Ends scopes of handlers, and notifies them that a stop has begun.
pub use tokio_util::sync::CancellationToken;

pub use signal::termination;

/// The caches on their own: informers, stores, clients, the REST mapper.
pub mod cache {
    pub use lariat_cache::*;
}

/// The work queue on its own; it knows nothing of Kubernetes.
pub mod queue {
    pub use lariat_queue::*;
}

/// Encryption at rest: keys, sealed values and streams, and what of a program's files is sealed.
pub mod seal {
    pub use lariat_seal::*;
}

#[cfg(feature = "metrics")]
#[doc(inline)]
pub use lariat_controller::metrics;

/// A Kubernetes API server in memory, for tests and for trying things out.
#[cfg(feature = "cluster")]
pub mod cluster {
    pub use lariat_cluster::*;
}

/// Whole programs in one thread, in virtual time, from one seed.
#[cfg(feature = "sim")]
pub mod sim {
    pub use lariat_sim::*;
}

/// Objects in SQLite: filtered, sorted, paged, counted and watched.
#[cfg(feature = "sql")]
pub mod sql {
    pub use lariat_sql::*;
}

/// The kube crate this is built on, for its client and its object types.
pub use kube;

/// Compiles the programs in the README.
#[cfg(all(doctest, feature = "cluster"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
