//! A deduplicating work queue with lanes, priorities, delayed adds and retries.
//!
//! Producers [`add`](WorkQueue::add) keys, workers [`get`](WorkQueue::get) them. The rules are those of client-go's
//! work queue:
//!
//! - A key that is added twice before a worker gets it is dequeued once.
//! - A key that is being processed is not given to another worker. If it is added meanwhile, it is queued again when
//!   the worker is done.
//! - Keys of one priority are dequeued in the order in which they were added.
//!
//! Beyond client-go, a key has *lanes*: independent pieces of work on the same key. In Lariat a lane is a handler. Each
//! lane fails, backs off and becomes due on its own, and a worker sees which lanes are due. The reason for an add
//! travels with the key as a [`Payload`]; when adds merge, their payloads merge.
//!
//! The crate contains no Kubernetes types. In the order of reading:
//!
//! - [`Add`] describes an add: the lanes, the delay, the [`Priority`], the payload.
//! - [`WorkQueue`] is the queue that producers and workers share, [`Work`] a key that a worker is processing.
//! - [`Verdict`] is the result of a lane, and a [`RateLimiter`] computes the delay of a retry.
//! - [`WorkQueue::limit`] and [`WorkQueue::close`] let keys wait for a lane, without a worker.
//! - [`QueueStats`] and [`QueueSnapshot`] show the state of a queue.
//! - [`QueueCore`] is the state machine below, in which time is a parameter.
//!
//! ```
//! use lariat::queue::{Add, WorkQueue};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let queue: WorkQueue<&str> = WorkQueue::default();
//! queue.add("pod-a", Add::now());
//! queue.add("pod-a", Add::now());
//!
//! let work = queue.get().await.expect("the queue is open");
//! assert_eq!(*work.key(), "pod-a");
//! work.done();
//!
//! queue.shut_down();
//! assert!(queue.get().await.is_none());
//! # }
//! ```

mod add;
mod limiter;

mod builder;
mod core;
mod queue;
mod queued;
mod shared;
mod stats;

pub use add::{Add, LaneId, Lanes, Payload, Priority};
pub use builder::{QueueBuilder, group};
pub use core::{Ageing, Item, QueueCore, Verdict};
pub use limiter::{
    AtMost, Exponential, FastSlow, Jittered, MaxOf, RateLimiter, TokenBucket, client_go_default,
    controller_runtime_default, lasso_default,
};
pub use queue::{Work, WorkQueue};
pub use queued::{KeyState, LaneWaits, QueueSnapshot, QueuedKey, QueuedLane, WaitsFor};
pub use stats::{Histogram, QueueMemory, QueueStats};
