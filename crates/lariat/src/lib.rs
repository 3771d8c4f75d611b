//! Shared controllers for Kubernetes: one watch, one cache and one work queue per kind, for any number of named
//! handlers.
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
//! Start with [`Operator`] and the module [`operator`](mod@operator) to write an operator: reconcilers, finalizers,
//! status, applied sets of objects, Events. Start with [`SharedControllerFactory`] for plain handlers: it has one
//! [`SharedController`] per kind, on which handlers are registered. A handler gets a [`Context`] and returns an
//! [`Outcome`].
//!
//! | feature | adds |
//! |---|---|
//! | `operator` (default) | `lariat::operator`: reconcilers, finalizers, status, apply, Events, permissions |
//! | `fleet` | `lariat::fleet`: an operator over a set of clusters that come and go |
//! | `rustls-tls` (default) | TLS by rustls and ring |
//! | `kube-runtime` | shared informers as kube-rs streams and stores |
//! | `cluster` | `lariat::cluster`, an in-memory Kubernetes API server, with simulated workloads and a load generator |
//! | `sim` | `lariat::sim`, which runs whole programs against that server in simulated time, reproducibly from a seed |
//! | `sql` | `lariat::sql`, objects in SQLite, for queries with filters, sorting and pages |
//! | `sql-http` | `lariat::sql::http`, which serves these queries over HTTP |
//! | `sql-postgres` | `lariat::sql::Postgres`, the same in a PostgreSQL database that replicas share |
//! | `console` | `lariat::console`, metrics, probes and a console over HTTP; enables `metrics` |
//! | `webhook` | `lariat::webhook`, admission and conversion webhooks; enables `operator` |
//! | `logging` | `lariat::logging`, logs for people or as JSON, with a filter that can be changed at run time |
//! | `otlp` | `lariat::logging::Otlp`, which exports spans to an OpenTelemetry collector |
//! | `metrics` | `lariat::metrics`, Prometheus metrics through `prometheus-client` |

pub mod prelude;
mod signal;

pub use lariat_controller::{
    AllKinds, Call, CallRecord, Context, ControllerOptions, ControllerStatus, Ended, Enqueue,
    EnqueueError, FactoryBuilder, FactoryPhase, FactoryStatus, FailingKey, Fenced, FlightRecorder,
    Gate, Handler, HandlerError, HandlerOptions, HandlerResult, HandlerStatus, HandlerWrite,
    HotLoop, Ignore, InProgress, KindsRegistration, Leadership, Lease, LeaseError, LeaseStatus,
    Middleware, Next, Outcome, Pattern, Predicate, QueuedKey, QueuedKeys, QueuedLane,
    RegisterError, Registration, Related, Relation, Resync, RetryAfter, RunError, RunRecord,
    Sentinel, ShardKey, Sharding, Shards, Share, SharedController, SharedControllerFactory,
    Standing, StartError, StopError, Terminal, Timeout, Transaction, Unfinished, UnknownHandler,
    WaitsFor, WeakControllerFactory,
};

pub use lariat_cache::{
    Cache, CachedObject, ClientIdentity, ConnectError, DecodeError, Http2, IdentityError,
    IndexError, InitialList, KindOptions, KindStatus, MapperError, Metadata, MissingKind, Phase,
    Query, Selection, Storage, SyncError, Transform, View, connect, from_config, from_kubeconfig,
};

/// The operator layer: reconcilers, finalizers, status, apply, Events.
///
/// ```no_run
/// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// use lariat::prelude::*;
/// use serde_json::json;
///
/// /// Creates a ConfigMap for every Deployment, which is deleted with it.
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
#[cfg(feature = "operator")]
pub mod operator {
    pub use lariat_operator::*;
}

#[cfg(feature = "operator")]
#[doc(inline)]
pub use lariat_operator::{CachedApi, Operator, Reconcile, Reconciler};

/// Operators over a set of clusters that come and go while they run.
#[cfg(feature = "fleet")]
pub mod fleet {
    pub use lariat_fleet::*;
}

pub use lariat_core::{
    Cause, Causes, Gvk, LabelSelector, Labels, ObjectKey, OwnerRef, RawObject, Remembered,
    ResourceKind, ResourceVersion, Scope, SelectorError, Uid, describe,
};

pub use lariat_cache::{Change, KindClient};
#[doc(inline)]
pub use lariat_core::clock;
pub use lariat_queue::{Ageing, KeyState, Priority, RateLimiter};
/// Ends scopes of handlers, and notifies them that a stop has begun.
pub use tokio_util::sync::CancellationToken;

pub use signal::termination;

/// The cache layer alone: informers, stores, clients, the REST mapper.
pub mod cache {
    pub use lariat_cache::*;
}

/// The work queue alone, independent of Kubernetes.
pub mod queue {
    pub use lariat_queue::*;
}

/// Encryption at rest: keys, sealed values and streams, and which kinds are encrypted.
pub mod seal {
    pub use lariat_seal::*;
}

#[cfg(feature = "metrics")]
#[doc(inline)]
pub use lariat_controller::metrics;

/// Metrics, probes and a console over HTTP.
///
/// ```no_run
/// use lariat::console::{Console, Serve};
/// use lariat::prelude::*;
///
/// # async fn example() -> anyhow::Result<()> {
/// let factory = SharedControllerFactory::builder(lariat::connect().await?).build();
/// factory.serve(Console::on("127.0.0.1:9090"))?;
/// factory.run(5, lariat::termination()).await?;
/// # Ok(()) }
/// ```
#[cfg(feature = "console")]
pub mod console {
    pub use lariat_console::*;
}

/// Admission and conversion webhooks.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::prelude::*;
/// use lariat::webhook::{Admission, Certificates, Hook, Reach, ReviewResult, Verdict, Webhooks};
///
/// async fn named(request: Admission<Pod>) -> ReviewResult<Verdict> {
///     Ok(match request.key().name() {
///         "" => Verdict::deny("a Pod needs a name of its own"),
///         _ => Verdict::allow(),
///     })
/// }
///
/// # async fn example() -> anyhow::Result<()> {
/// let factory = SharedControllerFactory::builder(lariat::connect().await?).build();
/// let server = Webhooks::new("pods.demo.dev", &factory)
///     .validate(Hook::new("named"), named)
///     .reached_by(Reach::service(&"demo/webhooks".parse()?).selects("app", "webhooks"))
///     .serve("0.0.0.0:9443", Certificates::secret(&"demo/webhooks-tls".parse()?))
///     .await?;
/// factory.run(5, lariat::termination()).await?;
/// server.shutdown().await;
/// # Ok(()) }
/// ```
#[cfg(feature = "webhook")]
pub mod webhook {
    pub use lariat_webhook::*;
}

/// Logs for people and for machines, and the export of spans.
#[cfg(feature = "logging")]
#[doc(inline)]
pub use lariat_console::logging;

pub use lariat_controller::log_panics;

/// An in-memory Kubernetes API server, for tests and demos.
#[cfg(feature = "cluster")]
pub mod cluster {
    pub use lariat_cluster::*;
}

/// Runs whole programs in one thread and in simulated time, from a seed.
#[cfg(feature = "sim")]
pub mod sim {
    pub use lariat_sim::*;
}

/// Objects in SQL: filtered, sorted, paged, counted and watched.
#[cfg(feature = "sql")]
pub mod sql {
    pub use lariat_sql::*;
}

/// The kube crate that Lariat is built on, for its client and object types.
pub use kube;

/// Compiles the programs in the README.
#[cfg(all(doctest, feature = "cluster", feature = "operator"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the programs in the guide to webhooks.
#[cfg(all(doctest, feature = "webhook"))]
#[doc = include_str!("../../../docs/webhooks.md")]
struct WebhookGuide;

/// Compiles the programs in the guide to logs and spans.
#[cfg(all(doctest, feature = "otlp"))]
#[doc = include_str!("../../../docs/tracing.md")]
struct TracingGuide;
