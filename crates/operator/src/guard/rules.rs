//! Rules: which writes a budget counts, and as how many objects.

use std::fmt;

use lariat_cache::{PendingWrite, WriteVerb};

use super::budget::{Budget, Limit};

/// A budget, with the writes that it counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) verbs: Verbs,
    pub(super) budget: Budget,
}

/// The number of objects that a deletion counts as, by kind.
#[derive(Debug, Clone, Default)]
pub(super) struct Weights(Vec<Weight>);

/// A kind, as in an RBAC rule, with its weight.
#[derive(Debug, Clone)]
struct Weight {
    group: String,
    resource: String,
    weight: u32,
}

/// Kinds whose deletion deletes everything in them: group and plural.
const CONTAINERS: [(&str, &str); 2] = [
    ("", "namespaces"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
];

impl Weights {
    pub(super) fn set(&mut self, group: &str, resource: &str, weight: u32) {
        self.0
            .retain(|each| each.group != group || each.resource != resource);
        self.0.push(Weight {
            group: group.to_owned(),
            resource: resource.to_owned(),
            weight,
        });
    }

    /// Returns the weight of each object of a write; `None` if it must be set first.
    pub(super) fn of(&self, act: Act, write: &PendingWrite<'_>) -> Option<u32> {
        // Weights are for deletions of whole objects. An eviction is one Pod.
        if act != Act::Delete || write.subresource().is_some() {
            return Some(1);
        }
        let path = write.api_path().strip_prefix("/apis/");
        let group = path
            .and_then(|path| path.split('/').next())
            .unwrap_or_default();
        let kind = (group, write.plural());
        let mut weights = self.0.iter();
        match weights.find(|each| (&*each.group, &*each.resource) == kind) {
            Some(each) => Some(each.weight),
            None => (!CONTAINERS.contains(&kind)).then_some(1),
        }
    }
}

/// The writes that a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verbs {
    Deletes,
    Creates,
    Changes,
    All,
}

/// The effect of a write, as far as budgets distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Delete,
    Create,
    Change,
}

impl Act {
    /// Returns the effect of a write; `None` if budgets do not count it.
    pub(super) fn of(write: &PendingWrite<'_>) -> Option<Self> {
        if write.is_dry_run() {
            return None;
        }
        match (write.verb(), write.subresource()) {
            // A handler must be able to report that it is blocked.
            (_, Some("status")) => None,
            (WriteVerb::Delete | WriteVerb::DeleteCollection, _) | (_, Some("eviction")) => {
                Some(Self::Delete)
            }
            (WriteVerb::Create, None) => Some(Self::Create),
            _ => Some(Self::Change),
        }
    }

    /// Returns the effect of a write to a whole object with this verb.
    pub(super) fn of_verb(verb: WriteVerb) -> Self {
        match verb {
            WriteVerb::Delete | WriteVerb::DeleteCollection => Self::Delete,
            WriteVerb::Create => Self::Create,
            _ => Self::Change,
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
    /// Returns whether each kind has a count of its own.
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
