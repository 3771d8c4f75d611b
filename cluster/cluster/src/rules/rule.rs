//! Rules: which requests a fault applies to, and how often.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::request_info::RequestInfo;
use crate::fault::Action;
use crate::journal::{Filtered, RecordedRequest};

/// A fault and a filter of the requests it applies to (default: all).
///
/// It fires at every matching request until it is removed, unless [`skip`](Filtered::skip), [`times`](Filtered::times),
/// [`probability`](Filtered::probability) or a time limit says otherwise. It has no effect until it is
/// [added](crate::Faults::add).
///
/// ```
/// use lariat::cluster::faults::{Action, Rule};
/// use std::time::Duration;
///
/// // Two of the updates in the first minute conflict.
/// let rule = Rule::new(Action::Conflict)
///     .verb("update")
///     .kind("ConfigMap")
///     .times(2)
///     .for_time(Duration::from_secs(60));
/// assert_eq!(rule.action(), &Action::Conflict);
/// ```
pub type Rule = Filtered<RuleOptions>;

/// The action of a [`Rule`], and how often it applies.
#[derive(Debug, Clone)]
pub struct RuleOptions {
    pub(crate) action: Action,
    pub(crate) kind: Option<String>,
    pub(super) condition: Option<Condition>,
    pub(crate) skip: u64,
    pub(crate) probability: f64,
    pub(crate) times: u64,
    /// The time after which it ends, counted from its addition.
    pub(crate) lasts: Option<Duration>,
    pub(super) until: Option<Instant>,
}

#[derive(Clone)]
pub(super) struct Condition(Arc<dyn Fn(&RecordedRequest) -> bool + Send + Sync>);

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The id of an added rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RuleId(pub(super) u64);

/// The number of the rule, which [`FromStr`] reads.
impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RuleId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

impl RuleId {
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

impl Filtered<RuleOptions> {
    /// Creates a rule for every request to which the action can apply.
    pub fn new(action: Action) -> Self {
        Self::all(RuleOptions {
            action,
            kind: None,
            condition: None,
            skip: 0,
            probability: 1.0,
            times: u64::MAX,
            lasts: None,
            until: None,
        })
    }

    /// Returns the action.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.inner.action
    }

    /// Narrows it to a resource by its kind, such as `ConfigMap`, in any version.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.inner.kind = Some(kind.into());
        self
    }

    /// Narrows it to requests that satisfy a condition, beside everything else.
    ///
    /// The condition runs while the rules are locked, so it must not use the cluster's faults. `at` and `code`
    /// are not known yet.
    ///
    /// ```
    /// use lariat::cluster::faults::{Action, Rule};
    ///
    /// let dry_runs = Rule::new(Action::NoReply).when(|request| request.query.contains("dryRun"));
    /// # drop(dry_runs);
    /// ```
    pub fn when(
        mut self,
        condition: impl Fn(&RecordedRequest) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.inner.condition = Some(Condition(Arc::new(condition)));
        self
    }

    /// Ends it at a moment of tokio's clock; it applies to no request from then on.
    pub fn until(mut self, end: Instant) -> Self {
        self.inner.until = Some(end);
        self
    }

    /// Ends it some time after it was added, on tokio's clock.
    pub fn for_time(mut self, time: Duration) -> Self {
        self.inner.lasts = Some(time);
        self
    }

    /// Lets the first matches pass (default 0).
    pub fn skip(mut self, matches: u64) -> Self {
        self.inner.skip = matches;
        self
    }

    /// Fires at the `n`-th match, counted from one, and never again.
    pub fn nth(self, n: u64) -> Self {
        self.skip(n.saturating_sub(1)).times(1)
    }

    /// Fires so many times at most (default: no limit).
    pub fn times(mut self, times: u64) -> Self {
        self.inner.times = times;
        self
    }

    /// Fires with a probability (default 1).
    ///
    /// The [seed](crate::ClusterBuilder::seed) of the cluster makes the chance repeatable. A number below 0 counts as
    /// 0, one above 1 as 1.
    pub fn probability(mut self, probability: f64) -> Self {
        self.inner.probability = probability;
        self
    }

    /// Returns whether it is for a request.
    pub(super) fn matches(&self, info: &RequestInfo<'_>) -> bool {
        let RuleOptions {
            action,
            kind,
            condition,
            ..
        } = &self.inner;
        let request = info.request;
        self.filter.matches(request)
            && kind.as_deref().is_none_or(|kind| info.is_about(kind))
            && action.applies_to(info)
            && condition
                .as_ref()
                .is_none_or(|Condition(holds)| holds(request))
    }

    /// Returns the moment it ends if it is added now.
    pub(super) fn end(&self, now: Instant) -> Option<Instant> {
        let RuleOptions { lasts, until, .. } = self.inner;
        let lasts_to = lasts.and_then(|time| now.checked_add(time));
        // With both the earlier one counts.
        until.into_iter().chain(lasts_to).min()
    }

    /// Returns whether it has fired as often as it may.
    pub(super) fn is_used_up(&self, fired: u64) -> bool {
        fired >= self.inner.times
    }

    /// Returns whether it fires at a match, given a random number below 1.
    ///
    /// `matches` and `fired` count those before.
    pub(super) fn fires(&self, matches: u64, fired: u64, chance: f64) -> bool {
        let options = &self.inner;
        matches >= options.skip && fired < options.times && chance < options.probability
    }
}
