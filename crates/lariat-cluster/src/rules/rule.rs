//! Which requests a fault is for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::applies::Asked;
use crate::fault::Action;
use crate::journal::Request;

/// A fault and the requests it is for: all, unless something narrows it.
///
/// Without more it meets every such request until it is taken away.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until it is added"]
pub struct Rule {
    pub(crate) action: Action,
    pub(crate) verb: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) subresource: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) condition: Option<Condition>,
    pub(crate) skip: u64,
    pub(crate) probability: f64,
    pub(crate) times: u64,
    /// How long it lasts after it was added.
    pub(crate) lasts: Option<Duration>,
    pub(crate) until: Option<Instant>,
}

#[derive(Clone)]
pub(crate) struct Condition(Arc<dyn Fn(&Request) -> bool + Send + Sync>);

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Names a rule that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(pub(super) u64);

impl RuleId {
    pub(crate) fn of(number: u64) -> Self {
        Self(number)
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl Rule {
    /// Makes a rule for every request the action says anything about.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            verb: None,
            resource: None,
            kind: None,
            subresource: None,
            namespace: None,
            name: None,
            client: None,
            condition: None,
            skip: 0,
            probability: 1.0,
            times: u64::MAX,
            lasts: None,
            until: None,
        }
    }

    /// Returns what it does.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.action
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

    /// Narrows it to a resource by its kind, such as `ConfigMap`, in any version.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
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

    /// Narrows it to requests that meet a condition, beside everything else.
    ///
    /// It is asked while the rules are locked, so it must not use the cluster's faults. `at` and `code`
    /// are not known yet.
    pub fn when(mut self, condition: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.condition = Some(Condition(Arc::new(condition)));
        self
    }

    /// Ends it at a moment of tokio's clock; it meets no request from then on.
    pub fn until(mut self, end: Instant) -> Self {
        self.until = Some(end);
        self
    }

    /// Ends it some time after it was added, on tokio's clock.
    pub fn for_time(mut self, time: Duration) -> Self {
        self.lasts = Some(time);
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
            && self.kind.as_deref().is_none_or(|kind| asked.is_about(kind))
            && self.action.applies_to(asked)
            && self
                .condition
                .as_ref()
                .is_none_or(|Condition(holds)| holds(request))
    }

    /// Returns the moment it ends if it is added now.
    pub(super) fn end(&self, now: Instant) -> Option<Instant> {
        let lasts_to = self.lasts.and_then(|time| now.checked_add(time));
        self.until.into_iter().chain(lasts_to).min()
    }

    /// Returns whether it fires at a match, given those before and a chance from 0 up to 1.
    pub(super) fn fires(&self, matches: u64, fired: u64, chance: f64) -> bool {
        matches >= self.skip && fired < self.times && chance < self.probability
    }
}
