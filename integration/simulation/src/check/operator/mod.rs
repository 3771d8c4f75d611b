//! Checkers of operators: finalizers, sets of children, statuses, Events, rest.
//!
//! They look at shops, the kind of the trial's operator, and report nothing in runs without it.

mod children;
mod cleanups;
mod ends;
mod events;
#[cfg(test)]
mod harness;
mod prunes;
mod requests;
mod settled;
mod status;
mod touched;

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_sim::internals::Event;

use super::Check;
use crate::operator_action::OperatorAction;

/// The stored resource of shops.
const SHOPS: &str = "shops.sim.dev";

pub(super) fn all() -> Vec<Box<dyn Check>> {
    vec![
        Box::<cleanups::Cleanups>::default(),
        Box::<ends::Ends>::default(),
        Box::<children::Foreign>::default(),
        Box::<prunes::Prunes>::default(),
        Box::<status::Forward>::default(),
        Box::<events::Events>::default(),
        Box::<requests::Writes>::default(),
        Box::<requests::Quiet>::default(),
        Box::<settled::Settled>::default(),
    ]
}

/// The processes that are operators.
#[derive(Default)]
struct Operators {
    /// Whether their work takes reads that caches do not answer.
    fetches: BTreeMap<Arc<str>, bool>,
    /// The number of incarnations they have begun together.
    incarnations: u32,
}

impl Operators {
    fn saw(&mut self, event: &Event) {
        if let Event::Did {
            incarnation,
            action,
        } = event
            && let Some(OperatorAction::Operates { fetches, .. }) = action.get()
        {
            self.fetches
                .insert(Arc::clone(&incarnation.process), *fetches);
            self.incarnations += 1;
        }
    }

    fn has(&self, process: &str) -> bool {
        self.fetches.contains_key(process)
    }
}
