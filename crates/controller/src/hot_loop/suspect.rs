//! The state that the hot loop detector keeps of a key.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, OwnWrite};
use lariat_core::{Cause, Causes, CausingRun, ObjectKey, ResourceVersion, changed_fields};
use lariat_queue::LaneId;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The pattern of a hot loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HotLoopPattern {
    /// The key's runs are caused only by writes and enqueues of runs for the same object, usually its own.
    ///
    /// Enqueues with a delay do not count.
    OwnWrites,
    /// Another writer reverts what the key's handlers write, and they write it again, five times in a row.
    Contested,
}

impl fmt::Display for HotLoopPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnWrites => "its handlers' own writes or enqueues cause its next run",
            Self::Contested => "another writer reverts what its handlers write",
        })
    }
}

/// A key in a hot loop.
///
/// ```no_run
/// use lariat::SharedControllerFactory;
///
/// # fn example(factory: &SharedControllerFactory) {
/// for controller in factory.status() {
///     for hot_loop in controller.hot_loops {
///         println!("{} {}: {}", controller.cache.gvk, hot_loop.key, hot_loop.pattern);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HotLoop {
    /// The key.
    pub key: ObjectKey,
    /// The pattern of the loop.
    pub pattern: HotLoopPattern,
    /// The handlers that write or enqueue; at most four.
    pub handlers: Vec<Arc<str>>,
    /// What enqueues the key; `None` if it is a change of its own object.
    ///
    /// The text has the causes of the run in which the loop was detected.
    pub triggered_by: Option<Arc<str>>,
    /// The fields of the key's object that the last write changed, as far as known; at most eight.
    pub fields: Vec<String>,
    /// The number of runs or reverts that were counted.
    pub rounds: u32,
}

/// A run that leads to another one by what it writes or enqueues.
#[derive(Debug, Clone)]
pub(crate) struct Lead {
    pub(crate) during: Arc<CausingRun>,
    /// The name of the handler.
    pub(crate) by: Arc<str>,
}

/// Who leads to a run.
enum Led {
    ByOwn(Lead),
    ByOthers,
    /// The causes do not tell: retries, and calls that were asked for later.
    Unknown,
}

/// How many written versions are remembered.
///
/// The watch may publish several writes of a run before their answers arrive.
const VERSIONS: usize = 4;

/// The maximum number of handlers reported.
const MOST_HANDLERS: usize = 4;

/// The maximum number of fields reported.
const MOST_FIELDS: usize = 8;

/// How many times in a row a write must be reverted and made again.
const REVERTS: u32 = 5;

/// The longest time between two runs in a row.
pub(super) const GAP: Duration = Duration::from_secs(120);

/// How long a loop must not be seen before it is forgotten.
const QUIET: Duration = Duration::from_secs(600);

type Written = VecDeque<(ResourceVersion, Lead)>;

/// A key that this process writes or enqueues.
#[derive(Debug, Default)]
pub(super) struct Suspect {
    /// When the key was last written or enqueued by this process.
    pub(super) touched: Option<Instant>,
    /// The last counted run that led to a run of the key, and when that run began.
    led: Option<(Arc<CausingRun>, Instant)>,
    /// How many runs in a row were led to by runs of the same object.
    pub(super) runs: u32,
    handlers: Vec<Arc<str>>,
    /// The last answered writes that lead to runs of the key.
    written: Written,
    /// The last write of the key's object that changed something.
    ours: Option<OwnWrite>,
    /// How many times in a row a write was reverted and made again.
    reverts: u32,
    /// The hot loop that was found, and when it was last seen.
    pub(super) found: Option<(HotLoop, Instant)>,
    /// Until when lanes wait whose options ask for a delay.
    slowed: HashMap<LaneId, Instant>,
}

impl Suspect {
    /// Records a write whose change leads to a run of the key.
    pub(super) fn leads(&mut self, version: &ResourceVersion, lead: Lead) {
        if self.written.len() >= VERSIONS {
            self.written.pop_front();
        }
        self.written.push_back((version.clone(), lead));
    }

    /// Records a write of the key's object; returns whether that shows a new hot loop.
    pub(super) fn wrote(&mut self, written: &OwnWrite, lead: Lead, now: Instant) -> bool {
        let before = written.before.as_ref();
        if before.is_some_and(|before| *before.version() == written.version) {
            return false;
        }
        self.name(&lead.by);
        self.leads(&written.version, lead);
        let ours = self.ours.replace(written.clone());
        // Another writer was in between, and now the object is again as this process had written it.
        let is_again = ours.zip(before).is_some_and(|(ours, before)| {
            before.version() != ours.after.version()
                && changed(&ours.after, &written.after).is_empty()
        });
        self.reverts = u32::from(is_again) * self.reverts.saturating_add(1);
        let is_contested = self.reverts >= REVERTS;
        is_contested && self.find(HotLoopPattern::Contested, written.after.key(), None, now)
    }

    /// Counts a run that begins.
    ///
    /// Returns whether it is part of a hot loop by own writes, and whether that is new.
    pub(super) fn began(
        &mut self,
        key: &ObjectKey,
        causes: &Causes,
        runs: u32,
        now: Instant,
    ) -> (bool, bool) {
        let lead = match self.led_by(causes) {
            Led::ByOwn(lead) => lead,
            Led::ByOthers => {
                self.runs = 0;
                return (false, false);
            }
            Led::Unknown => return (false, false),
        };
        let last = self.led.as_ref();
        let last = last.filter(|(last, at)| last.object == lead.during.object && now - *at <= GAP);
        if last.is_some_and(|(last, _)| lead.during.run <= last.run) {
            // The run was delayed, and has been counted before the delay.
            return (self.found.is_some(), false);
        }
        if last.is_none() {
            (self.runs, self.handlers) = (0, Vec::new());
        }
        self.runs = self.runs.saturating_add(1);
        self.name(&lead.by);
        self.led = Some((lead.during, now));
        // A single run by an own write, after a change by another writer, does not keep a loop alive.
        let goes_on = self.runs >= runs || self.found.is_some() && self.runs > 1;
        let is_new = goes_on && self.find(HotLoopPattern::OwnWrites, key, Some(causes), now);
        (self.found.is_some(), is_new)
    }

    /// Returns how long a lane's call waits that is part of a hot loop; none if it may begin.
    ///
    /// Once the delay is over, the call may begin, and the next one waits again.
    pub(super) fn wait(&mut self, lane: LaneId, delay: Duration, now: Instant) -> Option<Duration> {
        let until = *self.slowed.entry(lane).or_insert(now + delay);
        if until <= now {
            self.slowed.remove(&lane);
        }
        (until > now).then(|| until - now)
    }

    /// Returns who leads to a run with these causes. One cause by others is enough.
    fn led_by(&self, causes: &Causes) -> Led {
        let last = self.led.as_ref().map(|(last, _)| &last.object);
        let mut own: Option<Lead> = None;
        for cause in causes.since_failure() {
            match lead_of(cause, &self.written) {
                Led::ByOthers => return Led::ByOthers,
                Led::ByOwn(lead) if own.is_none() || last == Some(&lead.during.object) => {
                    own = Some(lead);
                }
                _ => {}
            }
        }
        own.map_or(Led::Unknown, Led::ByOwn)
    }

    fn name(&mut self, handler: &Arc<str>) {
        if self.handlers.len() < MOST_HANDLERS && !self.handlers.contains(handler) {
            self.handlers.push(Arc::clone(handler));
        }
    }

    /// Records that a loop was seen; returns whether it is new.
    fn find(
        &mut self,
        pattern: HotLoopPattern,
        key: &ObjectKey,
        causes: Option<&Causes>,
        now: Instant,
    ) -> bool {
        if let Some((found, seen)) = &mut self.found {
            *seen = now;
            found.rounds = found.rounds.saturating_add(1);
            return false;
        }
        let is_other =
            |cause: &Cause| matches!(cause, Cause::Related { .. } | Cause::Enqueued { .. });
        let causes = causes.filter(|causes| causes.since_failure().any(is_other));
        let ours = self.ours.as_ref().filter(|_| causes.is_none());
        let states = ours.and_then(|ours| Some((ours.before.as_ref()?, &ours.after)));
        let found = HotLoop {
            key: key.clone(),
            pattern,
            handlers: self.handlers.clone(),
            triggered_by: causes.map(|causes| causes.to_string().into()),
            fields: states.map_or_else(Vec::new, |(before, after)| changed(before, after)),
            rounds: self.runs.max(self.reverts),
        };
        self.found = Some((found, now));
        true
    }

    /// Forgets a loop that has not been seen for ten minutes. Writes alone do not keep it alive.
    pub(super) fn forget_if_quiet(&mut self, now: Instant) {
        let found = self.found.as_ref().map(|(_, seen)| *seen);
        if found
            .or(self.touched)
            .is_some_and(|seen| now - seen >= QUIET)
        {
            *self = Self::default();
        }
    }
}

/// Returns who leads to a run with this cause.
fn lead_of(cause: &Cause, written: &Written) -> Led {
    let (during, by) = match cause {
        Cause::Wrote { during, by, .. } => (during, by),
        Cause::Related { of } => return lead_of(&of.cause, written),
        // A handler that enqueues a key for later polls; it does not react to its own run.
        Cause::Enqueued { after, .. } if !after.is_zero() => return Led::Unknown,
        Cause::Enqueued {
            during: Some(during),
            by: Some(by),
            ..
        } => (during, by),
        // The watch may publish a write before its answer arrives. Then only the version shows whose write it is.
        Cause::Updated { to: version, .. } | Cause::Added { version } => {
            let lead = written.iter().find(|(written, _)| written == version);
            return lead.map_or(Led::ByOthers, |(_, lead)| Led::ByOwn(lead.clone()));
        }
        Cause::Retry { .. } | Cause::Requeued { .. } => return Led::Unknown,
        _ => return Led::ByOthers,
    };
    let (during, by) = (Arc::clone(during), Arc::clone(by));
    Led::ByOwn(Lead { during, by })
}

/// Returns whether a cause is by a run of this process, as far as the cause tells.
pub(super) fn is_led(cause: &Cause) -> bool {
    matches!(lead_of(cause, &Written::new()), Led::ByOwn(_))
}

/// Returns the fields that differ; if one of the states has only metadata, those of the metadata.
fn changed(before: &CachedObject, after: &CachedObject) -> Vec<String> {
    let is_whole = before.has_content() && after.has_content();
    let content = |object: &CachedObject| {
        let json = object.json().unwrap_or_default();
        let mut content: Value = serde_json::from_slice(&json).unwrap_or_default();
        if is_whole {
            return content;
        }
        json!({"metadata": content["metadata"].take()})
    };
    changed_fields(&content(before), &content(after), MOST_FIELDS)
}
