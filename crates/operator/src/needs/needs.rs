//! The declared rules of an operator and its reconcilers.

use lariat_core::Gvk;
use parking_lot::Mutex;

use super::rule::Rule;

/// The declared rules, each with the number of its reconciler; 0 is the operator.
#[derive(Default)]
pub(crate) struct Needs(Mutex<Vec<(u64, Rule)>>);

impl Needs {
    /// Adds the rules of a reconciler.
    pub(crate) fn add(&self, number: u64, rules: impl IntoIterator<Item = Rule>) {
        let rules = rules.into_iter().map(|rule| (number, rule));
        self.0.lock().extend(rules);
    }

    /// Removes the rules of a reconciler.
    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().retain(|(of, _)| *of != number);
    }

    /// Returns all rules, in the order of their declaration.
    pub(crate) fn rules(&self) -> Vec<Rule> {
        let rules = self.0.lock();
        rules.iter().map(|(_, rule)| rule.clone()).collect()
    }

    /// Returns whether a declared rule allows deleting objects of a kind.
    ///
    /// In whatever version. Reconcilers that apply or prune a kind declare such a rule.
    pub(crate) fn has_deletions_of(&self, gvk: &Gvk) -> bool {
        let rules = self.0.lock();
        rules.iter().any(|(_, rule)| rule.is_of_deletions(gvk))
    }
}
