//! Which writes a budget is for.

use std::fmt;

use lariat_cache::{PendingWrite, WriteVerb};

use super::budget::{Budget, Limit};

/// A budget for some writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) verbs: Verbs,
    pub(super) budget: Budget,
}

/// Which writes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbs {
    Deletes,
    Creates,
    Changes,
    All,
}

/// What a write does, as budgets tell writes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Delete,
    Create,
    Change,
}

impl Act {
    /// Returns what a write does; `None` for one that is not counted.
    pub(super) fn of(write: &PendingWrite<'_>) -> Option<Self> {
        if write.is_rehearsal() {
            return None;
        }
        match (write.verb(), write.subresource()) {
            (_, Some("status")) => None,
            (WriteVerb::Delete | WriteVerb::DeleteCollection, _) | (_, Some("eviction")) => {
                Some(Self::Delete)
            }
            (WriteVerb::Create, None) => Some(Self::Create),
            _ => Some(Self::Change),
        }
    }
}

impl Verbs {
    pub(super) fn cover(self, act: Act) -> bool {
        match self {
            Self::Deletes => act == Act::Delete,
            Self::Creates => act == Act::Create,
            Self::Changes => act == Act::Change,
            Self::All => true,
        }
    }
}

impl Rule {
    /// Returns whether kinds are counted each by itself.
    pub(super) fn is_by_kind(&self) -> bool {
        matches!(self.budget.limit, Limit::Share { .. })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs = match self.verbs {
            Verbs::Deletes => "deletions",
            Verbs::Creates => "creations",
            Verbs::Changes => "changes",
            Verbs::All => "writes",
        };
        write!(f, "budget of {verbs}, {}", self.budget)
    }
}
