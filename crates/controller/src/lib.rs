//! Shared controllers: one watch, one cache and one work queue per kind.
//!
//! Any number of named handlers share the controller of a Kubernetes kind.
//!
//! ```text
//! Cache ──changes──▶ WorkQueue ──get──▶ Worker ──▶ handlers that are due, in order
//!                        ▲                           │
//!   code ──enqueue───────┘◀───outcome of each────────┘
//! ```
//!
//! A [`SharedControllerFactory`] has one [`SharedController`] per kind, however often and in whatever form it is
//! requested. Handlers are registered by name. Each is called with a [`Context`], returns an [`Outcome`] or any error,
//! and is retried separately.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use lariat::{Context, Outcome, SharedControllerFactory};
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
//! Where to read on:
//!
//! - A handler: [`Handler`], [`Context`], [`Outcome`], [`HandlerError`], and its [`HandlerOptions`] with [`Predicate`]
//!   and [`Middleware`].
//! - A controller: [`SharedController`], [`Registration`], [`Enqueue`], [`Relation`] to other kinds, and its
//!   [`ControllerOptions`].
//! - A factory: [`FactoryBuilder`], [`start`](SharedControllerFactory::start), [`run`](SharedControllerFactory::run)
//!   and [`stop`](SharedControllerFactory::stop), [`Transaction`].
//! - Its state: [`FactoryStatus`], [`RunRecord`], [`QueuedKeys`], [`FailingKey`], [`GivenUpKey`] and
//!   [`HotLoop`].
//!
//! | feature | adds |
//! |---|---|
//! | `metrics` | `lariat_controller::metrics`, counters and histograms for a registry of `prometheus-client` |

// In layers, the lowest first: a module uses only modules above it in this list.
mod apart;
mod enqueue;
mod error;
mod gate;
mod notices;
mod signal;
mod totals;
mod unnoticed;
mod written;

mod hot_loop;

mod clients;
mod current;

mod handler;

mod panics;
mod payload;
mod snapshot;
mod status;

mod failures;

mod lane;

mod controller;

mod many;
mod related;

mod factory;
#[cfg(feature = "metrics")]
pub mod metrics;

pub use apart::run_apart;
pub use controller::{CallRecord, ControllerOptions, Registration, RunRecord, SharedController};
pub use enqueue::{Enqueue, EnqueueError};
pub use error::{RegisterError, RunError, StartError, StopError, Unfinished, UnknownHandler};
pub use factory::{
    FactoryBuilder, FactoryPhase, SharedControllerFactory, Transaction, WeakControllerFactory,
};
pub use gate::{Gate, GatedWrite};
pub use handler::{
    Call, Context, Handler, HandlerError, HandlerOptions, HandlerResult, Ignore, Middleware, Next,
    Outcome, Predicate, Resync, RetryAfter, RetrySlowly, Terminal, Timeout, WithOptions,
};
pub use hot_loop::{HotLoop, HotLoopOptions, HotLoopPattern};
pub use many::{AllKinds, KindsRegistration};
pub use panics::log_panics;
pub use related::{Related, Relation};
pub use signal::termination_signal;
pub use snapshot::{FailingKey, GivenUpKey, InProgress, QueuedKey, QueuedKeys, QueuedLane};
pub use status::{ControllerStatus, FactoryStatus, HandlerStatus};
pub use totals::CallOutcome;
pub use unnoticed::unnoticed;
