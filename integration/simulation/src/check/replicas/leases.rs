//! Leases and requests about them at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_cluster::Commit;
use lariat_sim::internals::{Event, LEASES, LeaseReport, Moment, ReportPhase};

use crate::check::{Check, Findings};
use crate::oracle::Oracle;
use crate::setup::Setup;

/// The number of requests besides renewals that a process may send in a minute.
///
/// They are a watch that is opened again, and the rest of the minute before.
const BESIDE: u32 = 4;

/// At rest each ring member, or the leader, holds one lease and sends little.
///
/// In the last minute a holder sends one update every retry period, by its own clock, and a process on standby sends
/// none but a watch that is opened again.
pub(super) struct Leases {
    setup: Arc<Setup>,
    /// The leases with a holder.
    held: BTreeSet<String>,
    /// Requests about leases in the last minute.
    sent: BTreeMap<Arc<str>, u32>,
    since: Duration,
}

impl Leases {
    pub(super) fn new(setup: &Arc<Setup>) -> Self {
        Self {
            setup: Arc::clone(setup),
            held: BTreeSet::new(),
            sent: BTreeMap::new(),
            since: Duration::ZERO,
        }
    }

    fn commit(&mut self, commit: &Commit) {
        match commit {
            Commit::Reset { .. } => self.held.clear(),
            Commit::Stored(object) if object.resource() == LEASES => {
                let (value, name) = (object.value(), object.key().name());
                if value["spec"]["holderIdentity"]
                    .as_str()
                    .unwrap_or_default()
                    .is_empty()
                {
                    self.held.remove(name);
                } else {
                    self.held.insert(name.to_owned());
                }
            }
            Commit::Removed { last } if last.resource() == LEASES => {
                self.held.remove(last.key().name());
            }
            _ => {}
        }
    }

    fn rest(&self, report: &LeaseReport, now: Duration) -> Findings {
        let mut found = Vec::new();
        let holders = report.members.iter().filter(|member| member.leads).count();
        if holders != self.held.len() {
            let held = self.held.len();
            found.push(format!(
                "{held} leases have a holder, and there are {holders} holders"
            ));
        }
        let lasted = now.saturating_sub(self.since);
        for member in &report.members {
            let process = &member.incarnation.process;
            let period = self
                .setup
                .rate(process)
                .of_run(self.setup.times.retry_period);
            // A renewal is one request per retry period of the process's own clock, which may run fast.
            let renewals = if member.leads {
                lasted.as_secs_f64() / period.as_secs_f64()
            } else {
                0.0
            };
            let sent = self.sent.get(process).copied().unwrap_or_default();
            if f64::from(sent) > renewals + f64::from(BESIDE) {
                found.push(format!(
                    "{process} has sent {sent} requests about leases within {lasted:.0?}"
                ));
            }
        }
        found
    }
}

impl Check for Leases {
    fn name(&self) -> &'static str {
        "leases are few and quiet"
    }

    fn saw(&mut self, _: &Oracle, moment: &Moment, event: &Event) -> Findings {
        match event {
            Event::Committed(commit) => self.commit(commit),
            Event::Sent { what, .. } if what.contains("/leases") => {
                *self.sent.entry(Arc::clone(&moment.actor)).or_default() += 1;
            }
            Event::LeasesReported(report) => match report.phase {
                ReportPhase::LastMinute => {
                    // Takeovers right after the faults are not part of the rate at rest.
                    self.sent.clear();
                    self.since = moment.at;
                }
                ReportPhase::Rest => return self.rest(report, moment.at),
                ReportPhase::Held => {}
            },
            _ => {}
        }
        Vec::new()
    }
}
