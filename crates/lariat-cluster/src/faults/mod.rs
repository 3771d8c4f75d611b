//! Faults: what goes wrong between a client and its cluster, on purpose.
//!
//! A [`Rule`] says which requests it is for and what happens to them, an [`Action`]. Rules are added
//! and removed while the cluster runs; they meet requests that arrive from then on, over sockets and in
//! process alike. Every action says whether it is [legal](Action::is_legal): something a client has to
//! get along with although its API server is correct.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
//! use lariat_cluster::Cluster;
//! use lariat_cluster::faults::{Action, After, Refusal, Rule};
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
//! # Ok(()) }
//! ```

mod action;
mod applies;
mod interpose;
mod refusal;
mod rule;
mod rules;

use std::fmt;
use std::sync::Arc;

use crate::server::Server;

pub use action::{Action, After};
pub use refusal::{Form, Refusal};
pub use rule::{Rule, RuleId};

/// The code of a [`Refusal`].
pub use http::StatusCode;

pub(crate) use applies::Asked;
pub(crate) use interpose::interpose;
pub(crate) use rules::{Fault, Met, Rules};

/// The faults of a cluster; a clone is a handle on the same.
///
/// Rules are asked in the order in which they were added. The first that fires decides what happens to a
/// request, and those behind it do not count the request; only [delays](Action::Delay) add up with what
/// follows. A cluster that stops asks no rule any more.
#[derive(Clone)]
pub struct Faults {
    pub(crate) server: Arc<Server>,
}

impl Faults {
    /// Adds a rule for the requests that arrive from now on.
    #[expect(
        clippy::must_use_candidate,
        reason = "it changes the rules; few need the id"
    )]
    pub fn add(&self, rule: Rule) -> RuleId {
        self.server.faults.add(rule, self.server.store.revision())
    }

    /// Takes a rule away, and tells whether it was still there.
    ///
    /// What it has done goes on: a request it holds stays held.
    #[expect(clippy::must_use_candidate, reason = "it changes the rules")]
    pub fn remove(&self, rule: RuleId) -> bool {
        self.server.faults.remove(rule)
    }

    /// Takes all rules away.
    pub fn clear(&self) {
        self.server.faults.clear();
    }

    /// Returns how often a rule has fired, 0 once it was taken away.
    #[must_use]
    pub fn hits(&self, rule: RuleId) -> u64 {
        self.server.faults.hits(rule)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = &self.server.faults;
        f.debug_struct("Faults").field("rules", rules).finish()
    }
}
