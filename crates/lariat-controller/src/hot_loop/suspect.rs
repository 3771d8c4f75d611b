//! The state that the hot loop detector keeps of a key that this process writes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::{Cause, Causes, ObjectKey, ResourceVersion};
use tokio::time::Instant;

use super::fields;
use super::options::HotLoopOptions;
use super::trail::ChainRun;

/// The pattern of a hot loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HotLoopPattern {
    /// The key's runs are caused only by their own writes and enqueues.
    ///
    /// Enqueues with a delay do not count.
    OwnWrites,
    /// Another writer reverts what the key's handlers write, and they write it again.
    Contested,
    /// The key's handlers keep writing without changing anything.
    NothingChanges,
}

impl HotLoopPattern {
    /// Says what ends a loop of this pattern.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::OwnWrites => "write or enqueue only if something is left to do",
            Self::Contested => "let one writer own the field",
            Self::NothingChanges => "write only if the value differs",
        }
    }
}

impl fmt::Display for HotLoopPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnWrites => "its handlers' own writes or enqueues cause its next run",
            Self::Contested => "another writer reverts what its handlers write",
            Self::NothingChanges => "its handlers' writes change nothing",
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
    /// The handlers that write the object.
    ///
    /// Empty if the key's runs write or enqueue other objects.
    pub handlers: Vec<Arc<str>>,
    /// What enqueues the key; `None` if it is a write of its own object.
    ///
    /// The text has the causes of the detected run, or names the related object that another writer reverts.
    pub triggered_by: Option<Arc<str>>,
    /// The fields that are written, as far as known; at most eight.
    pub fields: Vec<String>,
    /// The field manager that reverts them, if the cache keeps `managedFields`.
    pub manager: Option<String>,
    /// The number of runs or writes that were counted as part of the loop.
    pub rounds: u32,
    /// The delay of the next run.
    pub pause: Duration,
}

/// How many written versions are remembered.
///
/// The watch may publish several writes of a run before their responses arrive.
const VERSIONS: usize = 4;

/// The maximum number of handlers reported.
const MOST_HANDLERS: usize = 4;

/// The least time between two warnings about a key.
const WARNING_PERIOD: Duration = Duration::from_secs(600);

/// How long a key must be neither written nor detected before it is forgotten.
const QUIET: Duration = Duration::from_secs(600);

/// A run that the hot loop detector judges before it begins.
pub(crate) struct Ask<'a> {
    pub(crate) causes: &'a Causes,
    /// Whether some handler has a deletion to handle.
    pub(crate) has_deletion: bool,
    /// The run that enqueued the key, if it is part of a chain.
    pub(crate) step: Option<&'a Arc<ChainRun>>,
}

/// A write of a handler.
pub(crate) struct Write<'a> {
    pub(crate) before: Option<&'a Arc<CachedObject>>,
    pub(crate) after: &'a Arc<CachedObject>,
    pub(crate) version: &'a ResourceVersion,
    pub(crate) by: &'a Arc<str>,
    /// The chain length of a run that the write causes.
    pub(crate) chain: u32,
    /// The run that wrote, if it is part of a chain.
    pub(crate) step: Option<&'a Arc<ChainRun>>,
}

/// A write whose response has arrived.
#[derive(Debug)]
struct Answered {
    version: ResourceVersion,
    chain: u32,
    step: Option<Arc<ChainRun>>,
}

/// A key that this process writes.
#[derive(Debug)]
pub(super) struct Suspect {
    pub(super) touched: Instant,
    handlers: Vec<Arc<str>>,
    /// The last writes whose responses have arrived.
    written: VecDeque<Answered>,
    /// The state after the last write of this process that changed something.
    ours: Option<Arc<CachedObject>>,
    /// How many times in a row a write was reverted and made again.
    reverts: u32,
    /// The start of the current minute, and the writes in it that changed nothing.
    idle: (Instant, u32),
    /// The detected pattern, and when it was last seen.
    found: Option<(HotLoopPattern, Instant)>,
    /// Whether the contested object is a related one, not the key's own.
    is_over_related: bool,
    fields: Vec<String>,
    manager: Option<String>,
    rounds: u32,
    triggered_by: Option<Arc<str>>,
    pause: Duration,
    /// The end of the delay of the next run.
    until: Option<Instant>,
    warned: Option<Instant>,
}

impl Suspect {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            touched: now,
            handlers: Vec::new(),
            written: VecDeque::new(),
            ours: None,
            reverts: 0,
            idle: (now, 0),
            found: None,
            is_over_related: false,
            fields: Vec::new(),
            manager: None,
            rounds: 0,
            triggered_by: None,
            pause: Duration::ZERO,
            until: None,
            warned: None,
        }
    }

    /// Records a write; returns whether a warning is due.
    pub(super) fn wrote(
        &mut self,
        write: &Write<'_>,
        options: &HotLoopOptions,
        now: Instant,
    ) -> bool {
        self.forget_if_quiet(now);
        self.touched = now;
        if !self.handlers.contains(write.by) && self.handlers.len() < MOST_HANDLERS {
            self.handlers.push(Arc::clone(write.by));
        }
        let changes = write
            .before
            .is_none_or(|before| before.version() != write.version);
        let found = if changes {
            self.changed(write, options)
        } else {
            self.changed_nothing(options, now)
        };
        let Some(pattern) = found else {
            return false;
        };
        self.found = Some((pattern, now));
        self.rounds += 1;
        let is_due = |at: Instant| now - at >= WARNING_PERIOD;
        let warn = self.warned.is_none_or(is_due);
        if warn {
            self.warned = Some(now);
            self.name(write);
        }
        warn
    }

    /// Records that another writer reverts a related object that the key's runs write.
    pub(super) fn contested(&mut self, related: &Self, what: &str, now: Instant) {
        self.forget_if_quiet(now);
        self.touched = now;
        if self.found.is_some() && !self.is_over_related {
            // A loop of the key's own object was detected before, and delays its runs already.
            return;
        }
        self.is_over_related = true;
        self.found = Some((HotLoopPattern::Contested, now));
        self.rounds += 1;
        self.handlers.clone_from(&related.handlers);
        self.fields.clone_from(&related.fields);
        self.manager.clone_from(&related.manager);
        self.triggered_by = Some(what.into());
    }

    /// Returns whether a contested write was detected at exactly this time.
    pub(super) fn is_contested_at(&self, now: Instant) -> bool {
        self.found == Some((HotLoopPattern::Contested, now))
    }

    /// Returns whether this version is the last recorded write.
    pub(super) fn has_written(&self, version: &ResourceVersion) -> bool {
        let last = self.written.back();
        last.is_some_and(|last| last.version == *version)
    }

    fn changed(&mut self, write: &Write<'_>, options: &HotLoopOptions) -> Option<HotLoopPattern> {
        if self.written.len() >= VERSIONS {
            self.written.pop_front();
        }
        self.written.push_back(Answered {
            version: write.version.clone(),
            chain: write.chain,
            step: write.step.cloned(),
        });
        // A change ends a series of writes that changed nothing, and the loop that the series may have been.
        self.idle.1 = 0;
        self.found
            .take_if(|(pattern, _)| *pattern == HotLoopPattern::NothingChanges);
        let ours = self.ours.replace(Arc::clone(write.after));
        // If the state before this write is not the one after the last write, another writer was in between.
        if let (Some(ours), Some(before)) = (ours, write.before)
            && ours.version() != before.version()
            && self.count_reverts(&ours, before, write) >= options.reverts
        {
            return Some(HotLoopPattern::Contested);
        }
        (write.chain >= options.runs).then_some(HotLoopPattern::OwnWrites)
    }

    /// Counts how often in a row a write was reverted and made again.
    fn count_reverts(
        &mut self,
        ours: &CachedObject,
        before: &CachedObject,
        write: &Write<'_>,
    ) -> u32 {
        // If the cached state has only metadata and the response has content, the content is no difference. Then only
        // the metadata is compared.
        let is_whole = [ours, before, write.after]
            .iter()
            .all(|each| each.has_content());
        let content = |object: &CachedObject| {
            if is_whole {
                fields::content(object)
            } else {
                fields::metadata(object)
            }
        };
        let (theirs, after) = (content(before), content(write.after));
        let reverted = fields::reverted(&content(ours), &theirs, &after);
        if reverted.is_empty() {
            self.reverts = 0;
            return 0;
        }
        self.reverts += 1;
        self.manager = reverted
            .iter()
            .find_map(|path| fields::manager(&theirs, path));
        self.fields = reverted.iter().map(|path| path.join(".")).collect();
        self.reverts
    }

    /// Counts a write that changed nothing, within a minute.
    fn changed_nothing(
        &mut self,
        options: &HotLoopOptions,
        now: Instant,
    ) -> Option<HotLoopPattern> {
        const MINUTE: Duration = Duration::from_secs(60);
        if now - self.idle.0 >= MINUTE {
            self.idle = (now, 0);
        }
        self.idle.1 += 1;
        (self.idle.1 > options.unchanged_writes).then_some(HotLoopPattern::NothingChanges)
    }

    /// Determines the written fields, for a pattern that has not found them itself.
    fn name(&mut self, write: &Write<'_>) {
        if self
            .found
            .is_some_and(|(pattern, _)| pattern == HotLoopPattern::OwnWrites)
            && let Some(before) = write.before
        {
            let (before, after) = (fields::content(before), fields::content(write.after));
            let changed = fields::changed(&before, &after);
            self.fields = changed.iter().map(|path| path.join(".")).collect();
        }
    }

    /// Returns the length of the chain that leads to a run, and the chain's last run.
    ///
    /// The length is counted from the last run that made progress.
    ///
    /// The watch may publish a write before its response arrives. Then the cause is an ordinary update, and only its
    /// version shows that this process made the write.
    pub(super) fn chain<'a>(&'a self, ask: &Ask<'a>) -> (u32, Option<&'a Arc<ChainRun>>) {
        let mut step = ask.step;
        let chain = ask.causes.chain_by(|cause| match cause {
            Cause::Updated { to: version, .. } | Cause::Added { version } => {
                let mut written = self.written.iter();
                let ours = written.find(|written| written.version == *version);
                step = step.or(ours.and_then(|ours| ours.step.as_ref()));
                Some(ours.map_or(0, |ours| ours.chain))
            }
            _ => cause.chain(),
        });
        (since_progress(chain, step), step)
    }

    /// Returns the delay of a run; none if it may begin.
    ///
    /// When the delay is over, the run is judged again.
    pub(super) fn pause(
        &mut self,
        ask: &Ask<'_>,
        options: &HotLoopOptions,
        now: Instant,
    ) -> Option<Duration> {
        self.forget_if_quiet(now);
        let (chain, _) = self.chain(ask);
        // A retry has its own backoff, which is delay enough.
        let goes_on = chain >= options.runs && !ask.causes.is_retry();
        if goes_on {
            // A key whose runs write only other objects is touched nowhere else.
            self.touched = now;
            self.rounds += 1;
            if self.found.is_none() {
                // `wrote` would have detected a loop by writes of the key's own object.
                self.triggered_by = Some(ask.causes.to_string().into());
            }
            let (_, seen) = self.found.get_or_insert((HotLoopPattern::OwnWrites, now));
            *seen = now;
        }
        let is_foreign =
            |cause: &Cause| matches!(cause, Cause::Updated { .. } | Cause::Added { .. });
        let (pattern, _) = self.found?;
        let goes_round = match pattern {
            HotLoopPattern::OwnWrites => goes_on,
            // The other writer changes a related object. So its changes are part of the loop, while changes of the
            // key's own object and explicit requests are not, and are not delayed.
            HotLoopPattern::Contested if self.is_over_related => {
                let is_of_hot_loop =
                    |cause: &Cause| matches!(cause, Cause::Related { .. } | Cause::Wrote { .. });
                ask.causes.iter().all(is_of_hot_loop)
            }
            HotLoopPattern::Contested => true,
            HotLoopPattern::NothingChanges => !ask.causes.iter().any(is_foreign),
        };
        if !goes_round || ask.has_deletion || options.first_delay.is_zero() {
            return None;
        }
        // The run is delayed already, and another cause has enqueued the key before the delay was over: wait for the
        // rest. Once it is over, this run is the delayed one, and may begin.
        if let Some(until) = self.until {
            let rest = until.saturating_duration_since(now);
            if rest.is_zero() {
                self.until = None;
            }
            return Some(rest).filter(|rest| !rest.is_zero());
        }
        // Each delayed run doubles the delay, from the first to the longest.
        self.pause = self
            .pause
            .saturating_mul(2)
            .clamp(options.first_delay, options.longest_delay);
        self.until = now.checked_add(self.pause);
        Some(self.pause)
    }

    /// Returns whether the key has been neither written nor detected for ten minutes.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        let seen = self.found.map_or(self.touched, |(_, seen)| seen);
        now - seen.max(self.touched) >= QUIET
    }

    /// Resets the state if no loop has been seen for ten minutes.
    ///
    /// Writes alone do not keep a detected loop alive.
    fn forget_if_quiet(&mut self, now: Instant) {
        let is_over = self.found.is_some_and(|(_, seen)| now - seen >= QUIET);
        if is_over || self.is_quiet(now) {
            *self = Self::new(now);
        }
    }

    /// Returns the report about the key, if it is in a hot loop.
    pub(super) fn hot_loop(&self, key: &ObjectKey) -> Option<HotLoop> {
        Some(HotLoop {
            key: key.clone(),
            pattern: self.found?.0,
            handlers: self.handlers.clone(),
            triggered_by: self.triggered_by.clone(),
            fields: self.fields.clone(),
            manager: self.manager.clone(),
            rounds: self.rounds,
            pause: self.pause,
        })
    }

    pub(super) fn is_found(&self) -> bool {
        self.found.is_some()
    }
}

/// Returns the length of a chain since its last progress.
///
/// If the last run made progress, it counts as the first run of the chain.
pub(crate) fn since_progress(chain: u32, last: Option<&Arc<ChainRun>>) -> u32 {
    if last.is_some_and(|step| step.has_progressed()) {
        chain.min(1)
    } else {
        chain
    }
}
