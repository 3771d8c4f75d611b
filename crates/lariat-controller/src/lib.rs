//! Shared controllers: one watch, one cache and one queue per Kubernetes kind, and as many named
//! handlers as a program has.
//!
//! ```text
//! Cache ──changes──▶ WorkQueue ──take──▶ Worker ──▶ handlers due for the key, in order
//!                        ▲                            │
//!   code ──enqueue───────┘◀────outcome of each────────┘
//! ```
//!
//! A [`SharedControllerFactory`] gives out one [`SharedController`] per kind, however it is asked for.
//! Handlers are registered by name; each has its own retries. A handler is called with a [`Context`]
//! and returns an [`Outcome`] or any error.
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
//! | `metrics` | `lariat_controller::metrics`, what is counted in a registry of `prometheus-client` |

// In layers: each uses what stands before it.
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
pub use error::{RegisterError, RunError, StartError, StopError, Unfinished};
pub use factory::{FactoryBuilder, SharedControllerFactory, Transaction};
pub use gate::{Gate, HandlerWrite};
pub use handler::{
    Call, Context, Handler, HandlerError, HandlerOptions, HandlerResult, Ignore, Middleware, Next,
    Outcome, Predicate, Resync, RetryAfter, Terminal, Timeout, Tracing,
};
pub use lariat_cache::FlightRecorder;
pub use lariat_lease::{
    Fenced, Leadership, Lease, LeaseError, LeaseStatus, ShardKey, Sharding, Shards, Share, Standing,
};
pub use many::{AllKinds, KindsRegistration};
pub use related::{Related, Relation};
pub use sentinel::{HotLoop, Pattern, Sentinel};
pub use status::{ControllerStatus, HandlerStatus};
pub use totals::Ended;
