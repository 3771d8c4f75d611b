//! A work queue in which a key stands at most once, with everything that is due for it.
//!
//! Many producers [`add`](WorkQueue::add) keys, many workers [`get`](WorkQueue::get) them. The
//! rules are those of client-go's work queue: a key that is added twice before a worker gets it is handed
//! out once; a key that is with a worker is never handed to another, and if it is added meanwhile it
//! comes again afterwards; keys of one priority leave in the order in which they came.
//!
//! Beyond client-go, a key has *lanes*: independent pieces of work that share the key (in Lariat, the
//! handlers of a kind). Each lane fails, backs off and comes due on its own, and a worker learns
//! which lanes are due. Why a key is here travels with it as a [`Payload`], merged when adds merge.
//!
//! The queue knows nothing of Kubernetes. [`QueueCore`] is the state machine without clock and tasks,
//! [`WorkQueue`] the async shell around it.
//!
//! ```
//! use lariat_queue::{Add, WorkQueue};
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
mod shared;
mod stats;
mod tap;

pub use add::{Add, LaneId, Lanes, Payload, Priority};
pub use builder::{QueueBuilder, group};
pub use core::{Ageing, Item, QueueCore, Verdict};
pub use limiter::{
    AtMost, Exponential, FastSlow, Jittered, MaxOf, RateLimiter, TokenBucket, client_go_default,
    controller_runtime_default, lasso_default,
};
pub use queue::{Work, WorkQueue};
pub use stats::{Histogram, QueueMemory, QueueStats};
pub use tap::{Request, QueueStep, Tap};
