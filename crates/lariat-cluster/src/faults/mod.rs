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
//! // A leader loses its connection, and has it back later.
//! let partition = faults.partition("my-controller/");
//! faults.remove(partition);
//! # Ok(()) }
//! ```
//!
//! Faults that are no matter of single requests are methods of the [`Cluster`](crate::Cluster):
//! [cut](crate::Cluster::cut_watches) and [ended](crate::Cluster::end_watches) watches,
//! [forgotten history](crate::Cluster::compact), a [restored backup](crate::Cluster::rewind_to). Over HTTP
//! all of them are at the [admin endpoint](crate::ClusterBuilder::admin).

mod action;
mod applies;
mod form;
mod interpose;
mod refusal;
mod rule;
mod rules;
mod spoil;

use std::fmt;
use std::sync::Arc;

use crate::journal::Request;
use crate::server::Server;

pub use action::{Action, After};
pub use refusal::{Form, Refusal};
pub use rule::{Rule, RuleId};

/// The code of a [`Refusal`].
pub use http::StatusCode;

pub(crate) use applies::Asked;
pub(crate) use form::RuleForm;
pub(crate) use interpose::interpose;
pub(crate) use rules::{Fault, Isolated, Met, Rules};

/// The faults of a cluster; a clone is a handle on the same.
///
/// Rules are asked in the order in which they were added. The first that fires decides what happens to a
/// request, and those behind it do not count the request; only delays, of the [request](Action::Delay) and
/// of its [answer](Action::DelayReply), add up with what follows. A cluster that stops asks no rule any
/// more. A rule that is over, by its time or its number, stays until it is [removed](Faults::remove), so
/// that its [hits](Faults::hits) can be read; in long runs rules are to be removed.
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

    /// Cuts a client off from the cluster: its connections break, and so do its open watches.
    ///
    /// So do requests that wait, or whose answers wait, because of another rule. The client
    /// is known by how its `User-Agent` begins; an empty text stands for every client, as if
    /// the server were away. [Removing](Self::remove) the rule heals the partition.
    /// To end it by itself, or to narrow it, add a [`Rule`] with [`Action::Disconnect`]; this one also
    /// breaks the watches that are open.
    #[expect(clippy::must_use_candidate, reason = "as for add")]
    pub fn partition(&self, client: &str) -> RuleId {
        let rule = self.add(Rule::new(Action::Disconnect).client(client));
        self.server.faults.isolate(rule, client, false);
        rule
    }

    /// Cuts a client off without a word: its requests are not answered, its watches fall silent.
    ///
    /// So does a network that drops packets. As for a [partition](Self::partition), an empty text stands
    /// for every client. What hangs goes on hanging when the rule is
    /// [removed](Self::remove), as connections do whose other end forgot them.
    #[expect(clippy::must_use_candidate, reason = "as for add")]
    pub fn blackhole(&self, client: &str) -> RuleId {
        let rule = self.add(Rule::new(Action::NoAnswer).client(client));
        self.server.faults.isolate(rule, client, true);
        rule
    }

    /// Lets no write of a Lease by a client through, nor answers it, while all else works.
    ///
    /// A leader that is met by this must give up before its lease ends.
    #[expect(clippy::must_use_candidate, reason = "as for add")]
    pub fn block_leases(&self, client: &str) -> RuleId {
        let writes = |request: &Request| !matches!(&*request.verb, "get" | "list" | "watch");
        let rule = Rule::new(Action::NoAnswer).resource("leases");
        self.add(rule.client(client).when(writes))
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
