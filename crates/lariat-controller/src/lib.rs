//! Shared controllers: one watch, one cache and one work queue per Kubernetes kind, for any number of named handlers.
//!
//! ```text
//! Cache ──changes──▶ WorkQueue ──get──▶ Worker ──▶ handlers that are due, in order
//!                        ▲                           │
//!   code ──enqueue───────┘◀───outcome of each────────┘
//! ```
//!
//! A [`SharedControllerFactory`] has one [`SharedController`] per kind, however it is requested. Handlers are
//! registered by name, and each is retried separately. A handler is called with a [`Context`] and returns an
//! [`Outcome`] or any error.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use lariat_controller::{Context, Outcome, SharedControllerFactory};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let cluster = lariat_cluster::Cluster::builder().start().await?;
//! # let client = cluster.client();
//! let factory = SharedControllerFactory::builder(client).build();
//! factory.for_object::<Pod>().register_handler("log", |cx: Context<Pod>| async move {
//!     let phase = cx.object()?.and_then(|pod| pod.status.as_ref()?.phase.clone());
//!     println!("{}: {phase:?} because {}", cx.key(), cx.causes());
//!     Ok(Outcome::done())
//! })?;
//! factory.start(5).await?;
//! factory.stop().await?;
//! # Ok(()) }
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `metrics` | `lariat_controller::metrics`, counters and histograms for a registry of `prometheus-client` |

// In layers: a module uses modules above it only.
mod enqueue;
mod error;
mod gate;
mod notices;
mod totals;

mod sentinel;

mod current;

mod handler;

mod flight;
mod panics;
mod payload;
mod snapshot;
mod status;

mod lane;

mod controller;

mod many;
mod related;

mod factory;
#[cfg(feature = "metrics")]
pub mod metrics;

pub use controller::{CallRecord, ControllerOptions, Registration, RunRecord, SharedController};
pub use enqueue::{Enqueue, EnqueueError};
pub use error::{RegisterError, RunError, StartError, StopError, Unfinished, UnknownHandler};
pub use factory::{
    FactoryBuilder, FactoryPhase, SharedControllerFactory, Transaction, WeakControllerFactory,
};
pub use gate::{Gate, HandlerWrite};
pub use handler::{
    Call, Context, Handler, HandlerError, HandlerOptions, HandlerResult, Ignore, Middleware, Next,
    Outcome, Predicate, Resync, RetryAfter, Terminal, Timeout, WithOptions,
};
pub use lariat_cache::FlightRecorder;
pub use lariat_lease::{
    Fenced, Leadership, Lease, LeaseError, LeaseStatus, ShardKey, Sharding, Shards, Share, Standing,
};
pub use many::{AllKinds, KindsRegistration};
pub use panics::log_panics;
pub use related::{Related, Relation};
pub use sentinel::{HotLoop, Pattern, Sentinel};
pub use snapshot::{FailingKey, InProgress, QueuedKey, QueuedKeys, QueuedLane, WaitsFor};
pub use status::{ControllerStatus, FactoryStatus, HandlerStatus};
pub use totals::Ended;
