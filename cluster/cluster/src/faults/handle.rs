//! The handle that adds and removes fault rules.

use std::fmt;
use std::sync::Arc;

use crate::fault::Action;
use crate::journal::RecordedRequest;
use crate::rules::{CurrentRule, Rule, RuleId};
use crate::server::Server;
use crate::store::Ending;

/// Adds and removes the fault rules of a cluster; clones share them.
///
/// Rules are evaluated in the order in which they were added. The first that fires decides about a request; later rules
/// do not count that request. Delays, of the [request](Action::Delay) and of its [answer](Action::DelayReply), are the
/// exception: evaluation continues after them, and they add up. A cluster that is shutting down evaluates no rules. A
/// rule that has expired, by its time or its number, stays until it is [removed](Faults::remove), so that its
/// [hits](Faults::hits) can be read. Long runs should remove such rules.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::Cluster;
/// use lariat::cluster::faults::{Action, Rule};
/// use std::time::Duration;
///
/// let cluster = Cluster::builder().start().await?;
/// let faults = cluster.faults();
/// let slow = Rule::new(Action::Delay(Duration::from_millis(5))).verb("get");
/// let slow = faults.add(slow);
/// cluster.client().apiserver_version().await?;
/// assert_eq!(faults.hits(slow), 1);
/// assert!(faults.remove(slow));
/// assert!(faults.rules().is_empty());
/// # Ok(()) }
/// ```
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
    /// Requests that another rule delays fail too. `client` is a prefix of the `User-Agent`; an empty text matches
    /// every client, as if the server were down. [Removing](Self::remove) the rule heals the partition. For a partition
    /// that ends by itself or concerns some requests only, add a [`Rule`] with [`Action::Disconnect`]; such a rule
    /// leaves open watches alone.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use k8s_openapi::api::core::v1::Namespace;
    /// use kube::Api;
    /// use lariat::cluster::Cluster;
    ///
    /// let cluster = Cluster::builder().start().await?;
    /// let namespaces: Api<Namespace> = Api::all(cluster.client());
    /// let partition = cluster.faults().partition("");
    /// assert!(namespaces.get("default").await.is_err());
    /// cluster.faults().remove(partition);
    /// assert!(namespaces.get("default").await.is_ok());
    /// # Ok(()) }
    /// ```
    #[expect(clippy::must_use_candidate, reason = "as for add")]
    pub fn partition(&self, client: &str) -> RuleId {
        // The rule comes first, so that a watch that is cut off cannot be opened again in between.
        let rule = self.add(Rule::new(Action::Disconnect).client(client));
        self.server.faults.isolate(rule, client, false);
        rule
    }

    /// Cuts a client off silently: its requests and its watches hang.
    ///
    /// It simulates a network that drops packets. As for a [partition](Self::partition), an empty text matches every
    /// client. Requests and watches that hang do not recover when the rule is [removed](Self::remove), as with
    /// connections that the other side has forgotten.
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
        let writes =
            |request: &RecordedRequest| !matches!(&*request.verb, "get" | "list" | "watch");
        let rule = Rule::new(Action::NoAnswer).resource("leases");
        self.add(rule.client(client).when(writes))
    }

    /// Removes a rule, and returns whether it was still there.
    ///
    /// Its past effects remain: a request that it has suspended stays suspended.
    #[expect(clippy::must_use_candidate, reason = "it changes the rules")]
    pub fn remove(&self, rule: RuleId) -> bool {
        self.server.faults.remove(rule)
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.server.faults.clear();
    }

    /// Returns the rules, expired ones included, in the order of addition.
    #[must_use]
    pub fn rules(&self) -> Vec<CurrentRule> {
        self.server.faults.each()
    }

    /// Breaks every open watch in the middle of a line, as a lost connection does.
    pub fn cut_watches(&self) {
        self.server.store.end_watches(None, Ending::Cut);
    }

    /// Ends every open watch cleanly, as a watch timeout does.
    pub fn end_watches(&self) {
        self.server.store.end_watches(None, Ending::Clean);
    }

    /// Drops the history, so that every earlier version has expired.
    ///
    /// Open watches continue.
    pub fn expire_history(&self) {
        self.server.store.compact();
    }

    /// Returns the number of times a rule has fired, 0 once it was removed.
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
