//! Everything that remembers keeps to its bound.

use lariat_core::{Gvk, TableSize};
use lariat_sim::internals::Rest;

use super::{Check, Findings};
use crate::oracle::Oracle;

/// Tables of factories and operators keep to their bounds.
///
/// Entries of a kind go with its last use.
#[derive(Default)]
pub(super) struct Memory;

impl Check for Memory {
    fn name(&self) -> &'static str {
        "memory keeps to its bounds"
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let handled: Vec<&Gvk> = rest.controllers.iter().map(|of| &of.cache.gvk).collect();
        let cached: Vec<&Gvk> = rest.caches.iter().map(|of| &of.gvk).collect();
        let all = rest.remembered.iter();
        all.flat_map(|each| judge(each, &handled, &cached))
            .collect()
    }
}

/// The structures of a kind's cache, kept for a grace time after their last use.
///
/// All else goes with the last handler.
const OF_CACHES: [&str; 5] = [
    "cached objects",
    "own writes",
    "collections",
    "label indexes",
    "indexed objects",
];

/// Describes the violated bound of one structure.
///
/// Empty if its size fits the kinds that are handled and cached.
fn judge(of: &TableSize, handled: &[&Gvk], cached: &[&Gvk]) -> Findings {
    let mut found = Vec::new();
    if of.is_exceeded() {
        found.push(format!("there is too much of {of}"));
    }
    let in_use = if OF_CACHES.contains(&of.name) {
        cached
    } else {
        handled
    };
    let is_left = of.kind.as_ref().is_some_and(|kind| !in_use.contains(&kind));
    if is_left && of.entries > 0 {
        found.push(format!("nothing uses the kind any more, and there is {of}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_keeps_to_its_bound_and_goes_with_its_kind() {
        let (pods, jobs) = (Gvk::new("", "v1", "Pod"), Gvk::new("batch", "v1", "Job"));
        let check = |of: TableSize| judge(&of, &[&pods], &[&pods, &jobs]).len();
        assert_eq!(check(TableSize::new("runs", 5, 5).of(&pods)), 0);
        assert_eq!(check(TableSize::new("runs", 6, 5).of(&pods)), 1);
        assert_eq!(check(TableSize::new("clients", 6, 5)), 1);
        assert_eq!(check(TableSize::new("clients", 5, 5)), 0);
        assert_eq!(
            check(TableSize::new("own writes", 1, 5).of(&jobs)),
            0,
            "the grace time of the cache goes on"
        );
        assert_eq!(check(TableSize::new("runs", 1, 5).of(&jobs)), 1);
        assert_eq!(check(TableSize::new("runs", 0, 5).of(&jobs)), 0);
        let gone = Gvk::new("demo.dev", "v1", "Gone");
        assert_eq!(check(TableSize::new("own writes", 1, 5).of(&gone)), 1);
    }
}
