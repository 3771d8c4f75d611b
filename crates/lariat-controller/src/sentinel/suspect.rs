//! What is known of a key that this process writes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::{Cause, Causes, ObjectKey, ResourceVersion};
use tokio::time::Instant;

use super::fields;
use super::options::Sentinel;
use super::trail::ChainRun;

/// How a key is in a hot loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pattern {
    /// Its runs are caused by what its runs write or enqueue without delay, and by nothing else.
    OwnWrites,
    /// Somebody else undoes what its handlers write, and they write it again.
    Contested,
    /// Its handlers write, and nothing changes by it.
    NothingChanges,
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnWrites => "its handlers run because of what they write or enqueue themselves",
            Self::Contested => "somebody else undoes what its handlers write",
            Self::NothingChanges => "its handlers write and change nothing",
        })
    }
}

/// A key that is in a hot loop.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HotLoop {
    /// The key.
    pub key: ObjectKey,
    /// How it goes round.
    pub pattern: Pattern,
    /// The handlers that write it; none of a key whose runs write or enqueue others.
    pub handlers: Vec<Arc<str>>,
    /// What brings it back, if that is no write of its own: the causes of the run that was found out, or the related
    /// object that somebody else undoes.
    pub brought_by: Option<Arc<str>>,
    /// The fields that are written, as far as they are known: eight at most.
    pub fields: Vec<String>,
    /// Who undoes them, if the kind keeps `managedFields`.
    pub manager: Option<String>,
    /// How many times it went round.
    pub rounds: u32,
    /// How long its next run waits.
    pub pause: Duration,
}

/// How many versions are remembered: the watch may report several writes of a run before their answers come.
const VERSIONS: usize = 4;

/// How many handlers are named.
const MOST_HANDLERS: usize = 4;

/// How often one key is warned of.
const WARNING_PERIOD: Duration = Duration::from_secs(600);

/// How long a key has to be quiet before it is trusted again.
const QUIET: Duration = Duration::from_secs(600);

/// A run that asks whether it has to wait.
pub(crate) struct Ask<'a> {
    pub(crate) causes: &'a Causes,
    /// Some handler has not handled a deletion.
    pub(crate) has_deletion: bool,
    /// The run that brought it, if it is one of a chain.
    pub(crate) step: Option<&'a Arc<ChainRun>>,
}

/// A write of a handler.
pub(crate) struct Write<'a> {
    pub(crate) before: Option<&'a Arc<CachedObject>>,
    pub(crate) after: &'a Arc<CachedObject>,
    pub(crate) version: &'a ResourceVersion,
    pub(crate) by: &'a Arc<str>,
    /// The chain of a run that is caused by it.
    pub(crate) chain: u32,
    /// The run that wrote, if it is one of a chain.
    pub(crate) step: Option<&'a Arc<ChainRun>>,
}

/// A write that was answered.
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
    /// The writes that were answered last, each with the chain of a run that is caused by it.
    written: VecDeque<Answered>,
    /// The state after the last write that changed something.
    ours: Option<Arc<CachedObject>>,
    /// How often a write was undone and made again.
    undone: u32,
    /// How many writes changed nothing in the present minute.
    idle: (Instant, u32),
    /// How it goes round, and when it was last seen to.
    found: Option<(Pattern, Instant)>,
    /// Whether what is contested is a related object, and not the key's own.
    is_over_related: bool,
    fields: Vec<String>,
    manager: Option<String>,
    rounds: u32,
    brought_by: Option<Arc<str>>,
    pause: Duration,
    /// When the next run has waited long enough.
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
            undone: 0,
            idle: (now, 0),
            found: None,
            is_over_related: false,
            fields: Vec::new(),
            manager: None,
            rounds: 0,
            brought_by: None,
            pause: Duration::ZERO,
            until: None,
            warned: None,
        }
    }

    /// Takes a write in; returns whether a warning is due.
    pub(super) fn wrote(&mut self, write: &Write<'_>, options: &Sentinel, now: Instant) -> bool {
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

    /// Takes in that somebody else undoes what its runs write to a related object.
    pub(super) fn contested(&mut self, related: &Self, what: &str, now: Instant) {
        self.forget_if_quiet(now);
        self.touched = now;
        if self.found.is_some() && !self.is_over_related {
            // It is slowed down as it is.
            return;
        }
        self.is_over_related = true;
        self.found = Some((Pattern::Contested, now));
        self.rounds += 1;
        self.handlers.clone_from(&related.handlers);
        self.fields.clone_from(&related.fields);
        self.manager.clone_from(&related.manager);
        self.brought_by = Some(what.into());
    }

    /// Returns whether the last write was found to be undone by somebody else, at a time.
    pub(super) fn is_contested_at(&self, now: Instant) -> bool {
        self.found == Some((Pattern::Contested, now))
    }

    /// Returns whether a write was taken in last.
    pub(super) fn has_written(&self, version: &ResourceVersion) -> bool {
        let last = self.written.back();
        last.is_some_and(|last| last.version == *version)
    }

    fn changed(&mut self, write: &Write<'_>, options: &Sentinel) -> Option<Pattern> {
        if self.written.len() >= VERSIONS {
            self.written.pop_front();
        }
        self.written.push_back(Answered {
            version: write.version.clone(),
            chain: write.chain,
            step: write.step.cloned(),
        });
        self.idle.1 = 0;
        // Something changes after all.
        self.found
            .take_if(|(pattern, _)| *pattern == Pattern::NothingChanges);
        let ours = self.ours.replace(Arc::clone(write.after));
        if let (Some(ours), Some(before)) = (ours, write.before)
            && ours.version() != before.version()
            && self.count_undone(&ours, before, write) >= options.undone
        {
            return Some(Pattern::Contested);
        }
        (write.chain >= options.runs).then_some(Pattern::OwnWrites)
    }

    /// Looks whether somebody else undid our last write, which is made again now; returns how often in a row.
    fn count_undone(
        &mut self,
        ours: &CachedObject,
        before: &CachedObject,
        write: &Write<'_>,
    ) -> u32 {
        // A watch of metadata leaves out what answers to writes have; nobody undoes that.
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
        let undone = fields::undone(&content(ours), &theirs, &after);
        if undone.is_empty() {
            self.undone = 0;
            return 0;
        }
        self.undone += 1;
        self.manager = undone
            .iter()
            .find_map(|path| fields::manager(&theirs, path));
        self.fields = undone.iter().map(|path| path.join(".")).collect();
        self.undone
    }

    fn changed_nothing(&mut self, options: &Sentinel, now: Instant) -> Option<Pattern> {
        const MINUTE: Duration = Duration::from_secs(60);
        if now - self.idle.0 >= MINUTE {
            self.idle = (now, 0);
        }
        self.idle.1 += 1;
        (self.idle.1 > options.idle_writes).then_some(Pattern::NothingChanges)
    }

    /// Finds out which fields are written, where that is not known yet.
    fn name(&mut self, write: &Write<'_>) {
        if self
            .found
            .is_some_and(|(pattern, _)| pattern == Pattern::OwnWrites)
            && let Some(before) = write.before
        {
            let (before, after) = (fields::content(before), fields::content(write.after));
            let changed = fields::changed(&before, &after);
            self.fields = changed.iter().map(|path| path.join(".")).collect();
        }
    }

    /// Returns how many runs in a row, each caused by the write of the one before, led to a run, counted from the last
    /// that made progress; and the last of them.
    ///
    /// The watch may have shown a write before its answer came: then it is known by its version.
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

    /// Returns how long a run has to wait; it is asked again when it has.
    pub(super) fn pause(
        &mut self,
        ask: &Ask<'_>,
        options: &Sentinel,
        now: Instant,
    ) -> Option<Duration> {
        self.forget_if_quiet(now);
        let (chain, _) = self.chain(ask);
        // Retries have delays of their own.
        let goes_on = chain >= options.runs && !ask.causes.is_retry();
        if goes_on {
            // Also one whose runs write other objects; who writes what is notified of those.
            self.touched = now;
            self.rounds += 1;
            if self.found.is_none() {
                // By a write of its own it would have been found before.
                self.brought_by = Some(ask.causes.to_string().into());
            }
            let (_, seen) = self.found.get_or_insert((Pattern::OwnWrites, now));
            *seen = now;
        }
        let is_foreign =
            |cause: &Cause| matches!(cause, Cause::Updated { .. } | Cause::Added { .. });
        let (pattern, _) = self.found?;
        let goes_round = match pattern {
            Pattern::OwnWrites => goes_on,
            // What somebody does to the object itself does not wait then, nor what was asked for.
            Pattern::Contested if self.is_over_related => {
                let is_of_hot_loop =
                    |cause: &Cause| matches!(cause, Cause::Related { .. } | Cause::Wrote { .. });
                ask.causes.iter().all(is_of_hot_loop)
            }
            Pattern::Contested => true,
            Pattern::NothingChanges => !ask.causes.iter().any(is_foreign),
        };
        if !goes_round || ask.has_deletion || options.shortest_pause.is_zero() {
            return None;
        }
        // Another change may have brought it early.
        if let Some(until) = self.until {
            let rest = until.saturating_duration_since(now);
            if rest.is_zero() {
                self.until = None;
            }
            return Some(rest).filter(|rest| !rest.is_zero());
        }
        self.pause = (self.pause * 2).clamp(options.shortest_pause, options.longest_pause);
        self.until = now.checked_add(self.pause);
        Some(self.pause)
    }

    /// Returns whether it has neither been written nor been found out for long.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        let seen = self.found.map_or(self.touched, |(_, seen)| seen);
        now - seen.max(self.touched) >= QUIET
    }

    /// Trusts the key again if it has not gone round for long, whatever else was written.
    fn forget_if_quiet(&mut self, now: Instant) {
        let is_over = self.found.is_some_and(|(_, seen)| now - seen >= QUIET);
        if is_over || self.is_quiet(now) {
            *self = Self::new(now);
        }
    }

    /// Returns what is notified of it, if it is in a hot loop.
    pub(super) fn hot_loop(&self, key: &ObjectKey) -> Option<HotLoop> {
        Some(HotLoop {
            key: key.clone(),
            pattern: self.found?.0,
            handlers: self.handlers.clone(),
            brought_by: self.brought_by.clone(),
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

/// Returns what counts of a chain: one whose last run made progress is as short as one whose last run was the first.
pub(crate) fn since_progress(chain: u32, last: Option<&Arc<ChainRun>>) -> u32 {
    if last.is_some_and(|step| step.has_progressed()) {
        chain.min(1)
    } else {
        chain
    }
}
