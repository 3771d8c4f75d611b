//! Outages: what goes wrong with one kind does not touch the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_cluster::Commit;
use lariat_core::Gvk;
use lariat_sim::internals::{Activity, ActivityKind, Event, IncarnationId, Moment, Sample, WINDOW};

use super::incarnations::Incarnations;
use super::{Check, Findings};
use crate::oracle::Oracle;

/// A kind that no fault has concerned stays filled and up to date.
///
/// That holds whatever happens to the other kinds of the process.
///
/// The bounds: while the process and its factory run, the kind is filled within five seconds (a list, or reading it
/// again because more of it is needed, takes a few round trips of some milliseconds, and for each [`WINDOW`] objects a
/// turn, of ten milliseconds at most while there is much to read), and the version its cache has reached is no older
/// than the kind's last commit of a second ago. A fault for a kind, a process or everything counts as concerning it
/// from then on, because a watch that hangs is noticed after minutes; so does a CRD of a custom kind that changes. A
/// kind of which a part is selected is left out: its version says little.
#[derive(Default)]
pub(super) struct OtherKinds {
    incarnations: Incarnations,
    concerned: BTreeSet<(Arc<str>, Gvk)>,
    are_concerned: BTreeSet<Arc<str>>,
    /// Everything is, or the custom kinds are.
    all: bool,
    customs: bool,
    /// Since when a kind has not been filled.
    unfilled: BTreeMap<(IncarnationId, Gvk), Duration>,
}

const FILLING: Duration = Duration::from_secs(5);

const TURN: Duration = Duration::from_millis(10);
const UPDATING: Duration = Duration::from_secs(1);

impl Check for OtherKinds {
    fn name(&self) -> &'static str {
        "an outage of one kind leaves the others alone"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        self.incarnations.saw(moment, event);
        match event {
            Event::Disturbed { process, kind } => match (process, kind) {
                (None, None) => self.all = true,
                (Some(process), None) => {
                    self.are_concerned.insert(Arc::clone(process));
                }
                (process, Some(kind)) => {
                    // No process has an empty name, so it stands for all.
                    let process = process.clone().unwrap_or_else(|| Arc::from(""));
                    self.concerned.insert((process, kind.clone()));
                }
            },
            Event::Selected {
                incarnation, kind, ..
            } => {
                let process = Arc::clone(&incarnation.process);
                self.concerned.insert((process, kind.clone()));
            }
            // The first CRD of each is made before the programs start.
            Event::Committed(Commit::Stored(object) | Commit::Removed { last: object }) => {
                let is_crd = object
                    .resource()
                    .to_string()
                    .starts_with("customresourcedefinitions");
                self.customs |= is_crd && moment.at > UPDATING;
            }
            Event::Acted(Activity {
                incarnation,
                what: ActivityKind::Sampled(samples),
            }) => {
                return samples
                    .iter()
                    .flat_map(|sample| self.look(oracle, incarnation, sample, moment.at))
                    .collect();
            }
            Event::Acted(activity) => {
                self.unfilled.retain(|of, _| of.0 != activity.incarnation);
            }
            _ => {}
        }
        Vec::new()
    }
}

impl OtherKinds {
    fn is_concerned(&self, process: &Arc<str>, kind: &Gvk) -> bool {
        let of = |process: Arc<str>| self.concerned.contains(&(process, kind.clone()));
        self.all
            || (self.customs && !kind.group().is_empty())
            || self.are_concerned.contains(process)
            || of(Arc::clone(process))
            || of(Arc::from(""))
    }

    fn look(
        &mut self,
        oracle: &Oracle,
        incarnation: &IncarnationId,
        sample: &Sample,
        now: Duration,
    ) -> Option<String> {
        let state = self.incarnations.of(incarnation)?;
        let (runs, since) = (state.runs == Some(true) && !state.stops, state.since);
        let process = &incarnation.process;
        // A start fills all caches, which may take as long as the bound allows.
        if !runs || since + FILLING > now || self.is_concerned(process, &sample.kind) {
            return None;
        }
        let kind = sample.kind.kind();
        let of = (incarnation.clone(), sample.kind.clone());
        if !sample.is_synced {
            let since = *self.unfilled.entry(of).or_insert(now);
            // A body crosses to the process one window of frames per turn, so a long list takes turns and not only
            // round trips.
            let turns = u32::try_from(oracle.count(&sample.kind) / WINDOW).unwrap_or(u32::MAX);
            return (now >= since + FILLING + TURN.saturating_mul(turns)).then(|| {
                format!(
                    "{process}: {kind} is not filled since {since:?}, and nothing is wrong with it"
                )
            });
        }
        self.unfilled.remove(&of);
        // Compared with the kind's own commits: without bookmarks a quiet kind stays at the version of its last one.
        let newest = oracle.newest(&sample.kind, now.saturating_sub(UPDATING));
        (sample.version < newest).then(|| {
            format!(
                "{process}: {kind} is at version {}, the server had {newest} a second ago, and nothing is wrong with it",
                sample.version
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::harness::{CheckHarness, kind, sample};

    fn found(concerned: &Gvk) -> usize {
        let mut harness = CheckHarness::of(OtherKinds::default());
        harness.starts(0);
        let disturbed = Event::Disturbed {
            process: None,
            kind: Some(concerned.clone()),
        };
        harness.event(1, &disturbed);
        let unfilled = Sample {
            is_synced: false,
            ..sample(None)
        };
        harness.act(6000, ActivityKind::Sampled(vec![unfilled.clone()]));
        harness.act(10_000, ActivityKind::Sampled(vec![unfilled.clone()]));
        assert_eq!(harness.found(), 0);
        harness.act(11_000, ActivityKind::Sampled(vec![unfilled]));
        harness.found()
    }

    #[test]
    fn a_kind_that_is_not_filled_is_found_unless_a_fault_concerns_it() {
        assert_eq!(found(&Gvk::new("", "v1", "Secret")), 1);
        assert_eq!(found(&kind()), 0);
    }
}
