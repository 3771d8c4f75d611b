//! Keys that count as failing.

use lariat_sim::internals::Rest;

use crate::check::{Check, Findings};
use crate::oracle::Oracle;

/// At rest no handler counts keys that it fails for, wherever the keys have moved while they failed.
///
/// Handlers succeed once all faults have ended, and a retry comes after two minutes at most.
pub(super) struct NothingFails;

impl Check for NothingFails {
    fn name(&self) -> &'static str {
        "nothing fails at rest"
    }

    fn at_rest(&mut self, _: &Oracle, rest: &Rest<'_>) -> Findings {
        let mut found = Vec::new();
        for controller in rest.controllers {
            let kind = controller.cache.gvk.kind();
            let failing = controller.handlers.iter().filter(|each| each.failing > 0);
            found.extend(failing.map(|each| {
                let (name, count) = (&each.name, each.failing);
                format!("{name} of {kind} counts {count} keys as failing")
            }));
        }
        found
    }
}
