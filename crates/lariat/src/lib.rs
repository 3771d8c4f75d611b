//! Shared controllers for Kubernetes: one watch, one cache and one work queue for each kind.
//!
//! Any number of named handlers can be registered on a kind, from anywhere in a program. Each is retried separately and
//! is given the causes of its call.
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
//!         println!("{} {}: {}", cx.key(), if cx.object()?.is_some() { "exists" } else { "was deleted" }, cx.causes());
//!         Ok(Outcome::done())
//!     })?;
//!     Ok(factory.run(5, lariat::termination()).await?)
//! }
//! ```
//!
//! ```toml
//! [dependencies]
//! k8s-openapi = { version = "0.29", features = ["v1_36"] } # one version of Kubernetes must be chosen
//! lariat = "0.1"
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```
//!
//! | to | start with |
//! |---|---|
//! | handle changes | [`SharedControllerFactory`], [`SharedController`], [`Context`], [`Outcome`] |
//! | write an operator | [`Operator`], [`Reconcile`], the module [`operator`](mod@operator) |
//! | read caches | [`Cache`], [`Query`], [`KindOptions`], the module [`cache`] |
//! | run several replicas | [`Lease`], [`Sharding`] |
//! | test | `lariat::cluster`, with the feature `cluster` |
//!
//! The root has what most programs name; everything else is in the modules, one for each layer. The
//! [`prelude`] is for `use lariat::prelude::*`.
#![cfg_attr(
    all(
        doc,
        feature = "cluster",
        feature = "console",
        feature = "kube-runtime",
        feature = "operator",
        feature = "webhook"
    ),
    doc = "\nThe [guides](guide) explain how to use them together."
)]
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

#[cfg(all(
    doc,
    feature = "cluster",
    feature = "console",
    feature = "kube-runtime",
    feature = "operator",
    feature = "webhook"
))]
pub mod guide;
pub mod prelude;
#[cfg(feature = "cluster")]
mod sandbox;
mod signal;

#[doc(no_inline)]
pub use crate::cache::{
    Cache, CachedObject, KindOptions, Metadata, Query, Selection, Storage, connect, from_config,
    from_kubeconfig,
};
#[doc(no_inline)]
pub use crate::controller::{
    AllKinds, Context, ControllerOptions, Enqueue, FactoryBuilder, Handler, HandlerError,
    HandlerOptions, HandlerResult, Ignore, Outcome, Predicate, Registration, Relation, RetryAfter,
    SharedController, SharedControllerFactory, Terminal, log_panics,
};
#[doc(no_inline)]
pub use crate::core::{Cause, Causes, Gvk, ObjectKey, RawObject, describe};
#[doc(no_inline)]
pub use crate::lease::{Lease, Sharding};
#[cfg(feature = "operator")]
#[doc(no_inline)]
pub use crate::operator::{Desired, Operator, Reconcile};
#[doc(no_inline)]
pub use crate::queue::Priority;
/// The kube crate that Lariat is built on, for its client and object types.
pub use kube;
pub use signal::termination;
/// Ends scopes of handlers, and stops programs.
pub use tokio_util::sync::CancellationToken;

/// Factories, shared controllers, handlers, relations and their status.
///
/// ```
/// use lariat::controller::HotLoopOptions;
/// use lariat::{ControllerOptions, HandlerOptions};
///
/// let handlers = HandlerOptions::default().max_retries(10);
/// let options = ControllerOptions::default().handlers(handlers).hot_loops(HotLoopOptions::default().runs(50));
/// # let _ = options;
/// ```
pub mod controller {
    #[doc(inline)]
    pub use lariat_controller::*;
}

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
    #[doc(inline)]
    pub use lariat_operator::*;
}

/// Operators over a set of clusters that come and go while they run.
#[cfg(feature = "fleet")]
pub mod fleet {
    #[doc(inline)]
    pub use lariat_fleet::*;
}

/// Object keys, kinds, causes, selectors and raw objects.
///
/// ```
/// use lariat::core::{LabelSelector, ObjectKey};
///
/// let key: ObjectKey = "shop/web-0".parse()?;
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-0"));
/// let selector: LabelSelector = "app in (web, api), !canary".parse()?;
/// # let _ = selector;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod core {
    // Not all of the crate: the rest is what the layers share, such as the scanner of JSON.
    #[doc(inline)]
    pub use lariat_core::{
        Cause, Causes, CausingRun, FieldSelector, Gvk, LabelSelector, Labels, ManagedFields,
        ObjectKey, ObjectMetadata, OwnerRef, ParseGvkError, ParseKeyError, RawObject,
        RawObjectError, RelatedChange, ResourceKind, ResourceVersion, Scope, SelectorError,
        Subject, TableSize, Uid, changed_fields, clock, describe, without_credentials,
    };
}

/// Leader election and sharding between replicas, by Leases.
///
/// A factory uses it through [`FactoryBuilder::leader_election`] and [`FactoryBuilder::sharding`]; an
/// [`Elector`](lease::Elector) is for programs without controllers.
///
/// ```
/// use std::time::Duration;
///
/// use lariat::Lease;
///
/// let lease = Lease::new("shop-operator").namespace("shops").duration(Duration::from_secs(30));
/// assert!(lease.validate().is_ok());
/// ```
pub mod lease {
    #[doc(inline)]
    pub use lariat_lease::*;
}

/// The cache layer alone: informers, stores, clients, the REST mapper.
///
/// ```no_run
/// use std::time::Duration;
///
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::Gvk;
/// use lariat::cache::SharedCacheFactory;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedCacheFactory::new(lariat::connect().await?);
/// let pods = factory.for_kind(Gvk::new("", "v1", "Pod")).cache::<Pod>();
/// factory.start();
/// factory.wait_for_sync(Duration::from_secs(60)).await?;
/// println!("{} pods", pods.len());
/// # Ok(()) }
/// ```
pub mod cache {
    #[doc(inline)]
    pub use lariat_cache::*;
    #[doc(inline)]
    pub use lariat_client::{
        ConnectError, Http2, connect, from_config, from_kubeconfig, from_kubeconfig_file,
        from_kubeconfig_text, is_missing, is_too_large, retry_after,
    };
}

/// The work queue alone, independent of Kubernetes.
///
/// ```
/// use lariat::Priority;
/// use lariat::queue::{Add, WorkQueue};
///
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// queue.add("listed", Add::now().priority(Priority::Low));
/// queue.add("changed", Add::now());
/// assert_eq!(*queue.try_get().expect("a key is due").key(), "changed");
/// ```
pub mod queue {
    #[doc(inline)]
    pub use lariat_queue::*;
}

/// Encryption at rest: keys, sealed values and streams, and which kinds are encrypted.
pub mod seal {
    #[doc(inline)]
    pub use lariat_seal::*;
}

#[cfg(feature = "metrics")]
#[doc(no_inline)]
pub use crate::controller::metrics;

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
    #[doc(inline)]
    pub use lariat_console::*;
}

/// Admission and conversion webhooks.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::prelude::*;
/// use lariat::webhook::{Admission, Certificates, Hook, Endpoint, ReviewResult, Decision, Webhooks};
///
/// async fn named(request: Admission<Pod>) -> ReviewResult<Decision> {
///     Ok(match request.key().name() {
///         "" => Decision::deny("a Pod needs a name of its own"),
///         _ => Decision::allow(),
///     })
/// }
///
/// # async fn example() -> anyhow::Result<()> {
/// let factory = SharedControllerFactory::builder(lariat::connect().await?).build();
/// let server = Webhooks::new("pods.demo.dev", &factory)
///     .validate(Hook::new("named"), named)
///     .endpoint(Endpoint::service(&"demo/webhooks".parse()?).selects("app", "webhooks"))
///     .serve("0.0.0.0:9443", Certificates::secret(&"demo/webhooks-tls".parse()?))
///     .await?;
/// factory.run(5, lariat::termination()).await?;
/// server.shutdown().await;
/// # Ok(()) }
/// ```
#[cfg(feature = "webhook")]
pub mod webhook {
    #[doc(inline)]
    pub use lariat_webhook::*;
}

#[cfg(feature = "logging")]
#[doc(inline)]
pub use lariat_console::logging;

/// An in-memory Kubernetes API server, for tests and demos.
///
/// ```
/// use lariat::cluster::Cluster;
/// use lariat::cluster::testing::pod;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::builder().start().await?;
/// pod("web").create(&cluster.client()).await?;
/// assert_eq!(cluster.objects("pods").len(), 1);
/// # Ok(()) }
/// ```
#[cfg(feature = "cluster")]
pub mod cluster {
    #[doc(inline)]
    pub use lariat_cluster::*;

    pub use crate::sandbox::{Sandbox, SandboxError};
}

/// Runs whole programs in one thread and in simulated time, from a seed.
#[cfg(feature = "sim")]
pub mod sim {
    #[doc(inline)]
    pub use lariat_sim::*;
}

/// Objects in SQL: filtered, sorted, paged, counted and watched.
#[cfg(feature = "sql")]
pub mod sql {
    #[doc(inline)]
    pub use lariat_sql::*;
}

/// Compiles the programs in the README.
#[cfg(all(doctest, feature = "cluster", feature = "operator"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Compiles the programs in the pages of `docs` that are not guides.
#[cfg(all(doctest, feature = "console", feature = "operator"))]
#[doc = include_str!("../../../docs/console.md")]
struct ConsolePage;

/// Compiles the programs in the page about queries.
#[cfg(all(doctest, feature = "sql-http", feature = "sql-postgres"))]
#[doc = include_str!("../../../docs/sql.md")]
struct SqlPage;
