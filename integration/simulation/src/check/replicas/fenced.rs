//! No write is sent without a lease.

use std::sync::Arc;

use lariat_sim::internals::{Event, Moment};

use super::terms::{ROUNDING, Terms};
use crate::check::{Check, Findings};
use crate::oracle::Oracle;
use crate::setup::Setup;

/// No process sends a write after the deadline of its lease.
///
/// Each try of a request counts, also of one that began before, and the first one after a suspension. Requests about
/// leases do not count.
pub(super) struct FencedWrites {
    terms: Terms,
}

impl FencedWrites {
    pub(super) fn new(setup: &Arc<Setup>) -> Self {
        Self {
            terms: Terms::new(setup),
        }
    }

    fn sent(&self, moment: &Moment, what: &str) -> Option<String> {
        let incarnation = self.terms.living(&moment.actor)?;
        let Some(deadline) = self.terms.deadline(incarnation) else {
            return Some(format!(
                "{} sends {what}, and it has no lease",
                moment.actor
            ));
        };
        let is_late = deadline + ROUNDING < moment.at;
        is_late.then(|| {
            format!(
                "{} sends {what}, and its lease ended at {deadline:.3?}",
                moment.actor
            )
        })
    }
}

impl Check for FencedWrites {
    fn name(&self) -> &'static str {
        "writes end with the lease"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.terms.saw(moment, event);
        match event {
            Event::Sent { what, .. } if !what.starts_with("GET ") && !what.contains("/leases") => {
                self.sent(moment, what).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}
