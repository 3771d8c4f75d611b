//! Fault injection: failures between clients and their cluster.
//!
//! A [`Rule`] selects requests and applies an [`Action`] to them. Rules are added and removed through [`Faults`] while
//! the cluster runs. They apply to requests that arrive from then on, over sockets and in process alike. Every action
//! is either [legal](Action::is_legal), so that a client must handle it although its API server is correct, or illegal.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! use lariat::cluster::{Cluster, faults::{Action, After, Refusal, Rule}};
//!
//! let cluster = Cluster::builder().seed(7).start().await?;
//! let faults = cluster.faults();
//! // Every third list or so is refused, as by an overloaded server.
//! let refusal = Action::Refuse(Refusal::too_many_requests());
//! faults.add(Rule::new(refusal).verb("list").probability(0.3));
//! // The first watch of Pods breaks off after two events.
//! let cut = Action::CutWatch(After::Events(2));
//! let cut = faults.add(Rule::new(cut).resource("pods").nth(1));
//! // … a controller runs …
//! assert_eq!(faults.hits(cut), 0);
//! faults.clear();
//! // A leader loses its connection, and has it back later.
//! let partition = faults.partition("my-controller/");
//! faults.remove(partition);
//! # Ok(()) }
//! ```
//!
//! Faults that do not concern single requests are methods of [`Faults`] and of the [`Cluster`](crate::Cluster):
//! [cut](Faults::cut_watches) and [ended](Faults::end_watches) watches, [forgotten history](Faults::expire_history), a
//! [restored backup](crate::Cluster::rewind_to). Over HTTP
//! all of them are at the [admin endpoint](crate::ClusterBuilder::admin).

mod admission;
mod apply;
mod before_verb;
mod body;
mod concurrent_update;
mod handle;
mod json;
mod recreate;
mod refuse;

pub use crate::fault::{Action, After, ErrorBody, Refusal};
pub use crate::rules::{CurrentRule, Rule, RuleId, RuleOptions};
pub use handle::Faults;
/// The code of a [`Refusal`].
pub use http::StatusCode;

pub(crate) use apply::apply;
pub(crate) use before_verb::before_verb;
pub(crate) use json::RuleJson;
