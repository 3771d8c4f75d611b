//! Rules as they are at a moment.

use std::fmt;

use super::rule::{Rule, RuleId};

/// A rule that was added, as it is at the moment.
///
/// Written out it is a sentence, such as `All list requests for pods are answered 503 Service Unavailable, twice at most`.
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

    /// Returns how often it has fired.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Returns whether its time is over, or it has fired as often as it may.
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
