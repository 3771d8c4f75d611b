//! Rules as they are at a moment.

use std::fmt;

use super::rule::{Rule, RuleId};

/// The state of an added rule.
///
/// It displays as a sentence, such as `All list requests for pods are answered 503 Service Unavailable, twice at most`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::Cluster;
/// use lariat::cluster::faults::{Action, Refusal, Rule, StatusCode};
///
/// let cluster = Cluster::builder().start().await?;
/// let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
/// cluster.faults().add(Rule::new(Action::Refuse(refusal)).verb("list").resource("pods").times(2));
/// assert_eq!(
///     cluster.faults().rules()[0].to_string(),
///     "All list requests for pods are answered 503 Service Unavailable, twice at most",
/// );
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct CurrentRule {
    pub(super) id: RuleId,
    pub(super) rule: Rule,
    pub(super) hits: u64,
    pub(super) is_over: bool,
    pub(super) isolates: bool,
}

impl CurrentRule {
    /// Returns the id by which it is removed.
    #[must_use]
    pub fn id(&self) -> RuleId {
        self.id
    }

    /// Returns the rule.
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Returns the number of times it has fired.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Returns whether it has expired: by its time, or by its number of hits.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl fmt::Display for CurrentRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)?;
        if self.isolates {
            f.write_str("; the watches that were open were broken")?;
        }
        Ok(())
    }
}
