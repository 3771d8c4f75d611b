//! The rules of an operator.

use lariat_core::Gvk;
use parking_lot::Mutex;

use super::rule::Rule;

/// What was said to be needed, each with the number of the reconciler that needs it; 0 is the operator.
#[derive(Default)]
pub(crate) struct Needs(Mutex<Vec<(u64, Rule)>>);

impl Needs {
    /// Notes what a reconciler needs.
    pub(crate) fn add(&self, number: u64, rules: impl IntoIterator<Item = Rule>) {
        let rules = rules.into_iter().map(|rule| (number, rule));
        self.0.lock().extend(rules);
    }

    /// Forgets what a reconciler needed.
    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().retain(|(of, _)| *of != number);
    }

    /// Returns all rules, in the order in which they were said.
    pub(crate) fn rules(&self) -> Vec<Rule> {
        let rules = self.0.lock();
        rules.iter().map(|(_, rule)| rule.clone()).collect()
    }

    /// Returns whether somebody needs to delete objects of a kind, in whichever version: who applies or prunes it.
    pub(crate) fn has_deletions_of(&self, gvk: &Gvk) -> bool {
        let rules = self.0.lock();
        rules.iter().any(|(_, rule)| rule.is_of_deletions(gvk))
    }
}
