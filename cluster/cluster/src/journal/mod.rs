//! The record of requests, for tests that count them.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! use std::time::Duration;
//! use lariat::cluster::Cluster;
//!
//! let cluster = Cluster::builder().start().await?;
//! let journal = cluster.journal();
//! let mark = journal.mark();
//! // … a controller runs …
//! let patches = journal.select().verb("patch").client("my-controller/").since(mark);
//! assert!(patches.count() <= 10);
//! // Nothing was asked more than 20 times in any second.
//! journal.assert_no_hot_loop(20, Duration::from_secs(1));
//! # Ok(()) }
//! ```

mod assertions;
mod entries;
mod filter;
mod report;
mod select;

pub use entries::{Journal, Mark, RecordedRequest};
pub use filter::Filtered;
pub(crate) use filter::RequestFilter;
pub use select::{RequestQuery, Selection};
