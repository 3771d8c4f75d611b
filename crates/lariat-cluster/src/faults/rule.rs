//! Which requests a fault is for.

use super::{Action, Asked};

/// A fault and the requests it is for: all, unless something narrows it.
///
/// Without more it meets every such request until it is taken away.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until it is added"]
pub struct Rule {
    pub(super) action: Action,
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    client: Option<String>,
    skip: u64,
    probability: f64,
    times: u64,
}

/// Names a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(pub(super) u64);

impl Rule {
    /// Makes a rule for every request the action says anything about.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            verb: None,
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            client: None,
            skip: 0,
            probability: 1.0,
            times: u64::MAX,
        }
    }

    /// Narrows it to a verb, as the [journal](crate::Request::verb) has it.
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Narrows it to a resource by its plural name.
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.resource = Some(plural.into());
        self
    }

    /// Narrows it to a subresource; an empty text means the resource itself.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Narrows it to a namespace in the path.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Narrows it to a name in the path, which creations do not have.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Narrows it to clients whose `User-Agent` begins so.
    pub fn client(mut self, user_agent: impl Into<String>) -> Self {
        self.client = Some(user_agent.into());
        self
    }

    /// Lets the first matches pass (default 0).
    pub fn skip(mut self, matches: u64) -> Self {
        self.skip = matches;
        self
    }

    /// Fires at the `n`-th match, counted from one, and never again.
    pub fn nth(self, n: u64) -> Self {
        self.skip(n.saturating_sub(1)).times(1)
    }

    /// Fires so many times at most (default: no limit).
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Fires with a probability (default 1), by chance that the [seed](crate::ClusterBuilder::seed) of
    /// the cluster makes repeatable. What is not between 0 and 1 is taken for the nearer of them.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    /// Returns whether it is for a request.
    pub(super) fn matches(&self, asked: &Asked<'_>) -> bool {
        let request = asked.request;
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == value)
        };
        is(&self.verb, &request.verb)
            && is(&self.resource, &request.resource)
            && is(
                &self.subresource,
                request.subresource.as_deref().unwrap_or_default(),
            )
            && is(
                &self.namespace,
                request.namespace.as_deref().unwrap_or_default(),
            )
            && is(&self.name, request.name.as_deref().unwrap_or_default())
            && self
                .client
                .as_deref()
                .is_none_or(|client| request.user_agent.starts_with(client))
            && self.action.applies_to(asked)
    }

    /// Returns whether it fires at a match, given those before and a chance from 0 up to 1.
    pub(super) fn fires(&self, matches: u64, fired: u64, chance: f64) -> bool {
        matches >= self.skip && fired < self.times && chance < self.probability
    }
}
