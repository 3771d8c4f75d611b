//! The handle by which faults are added and removed.

use std::fmt;
use std::sync::Arc;

use crate::fault::Action;
use crate::journal::Request;
use crate::rules::{CurrentRule, Rule, RuleId};
use crate::server::Server;
use crate::store::Ending;

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

    /// Cuts a client off: its connections and its open watches break.
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

    /// Cuts a client off silently: its requests and its watches hang.
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

    /// Drops a client's writes of Leases without an answer, while all else works.
    ///
    /// A leader to which this happens must give up before its lease ends.
    #[expect(clippy::must_use_candidate, reason = "as for add")]
    pub fn block_leases(&self, client: &str) -> RuleId {
        let writes = |request: &Request| !matches!(&*request.verb, "get" | "list" | "watch");
        let rule = Rule::new(Action::NoAnswer).resource("leases");
        self.add(rule.client(client).when(writes))
    }

    /// Removes a rule, and returns whether it was still there.
    ///
    /// What it has done goes on: a request it holds stays held.
    #[expect(clippy::must_use_candidate, reason = "it changes the rules")]
    pub fn remove(&self, rule: RuleId) -> bool {
        self.server.faults.remove(rule)
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.server.faults.clear();
    }

    /// Returns the rules there are, in the order in which they were added.
    #[must_use]
    pub fn rules(&self) -> Vec<CurrentRule> {
        self.server.faults.each()
    }

    /// Breaks every open watch off in the middle of a line, as a lost connection does.
    pub fn cut_watches(&self) {
        self.server.store.end_watches(None, Ending::Cut);
    }

    /// Ends every open watch cleanly, as their timeout does.
    pub fn end_watches(&self) {
        self.server.store.end_watches(None, Ending::Clean);
    }

    /// Forgets the history, so that every earlier version has expired.
    ///
    /// Open watches go on.
    pub fn expire_history(&self) {
        self.server.store.compact();
    }

    /// Returns how often a rule has fired, 0 once it was removed.
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
