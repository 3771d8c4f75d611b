//! The oldest states of the server that a process may still be shown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use lariat_cluster::Commit;
use lariat_sim::internals::{CacheProgress, Event, IncarnationId, Moment};

use super::kind::{Kind, name_of};

/// The times up to which caches of living processes are known to be complete.
///
/// A checker asks for states that a process is shown, has read or has written. Processes take them from their caches,
/// and a cache that was complete at a time has none that had been followed by another one by then. What is not taken
/// from a complete cache is at most [`MARGIN`] older: an answer that is late, a list at an older version, a process
/// that is paused while it waits for either. So for each kind the horizon is the oldest of these times, over the living
/// processes that cache the kind, less the margin. A cache that is not kept up to date (its factory is stopped, its
/// watch hangs) holds the horizon back until it is, and a process that has not been asked yet does from its beginning.
#[derive(Default)]
pub(super) struct Horizon {
    /// Versions of this epoch and the times of their commits, back to [`REACH`].
    commits: VecDeque<(u64, Duration)>,
    /// The newest version of all epochs before.
    before: u64,
    incarnations: BTreeMap<IncarnationId, Incarnation>,
}

/// The age, relative to a complete cache, of the oldest state that a process is shown.
///
/// It is longer than the delays, silences and pauses of a plan together, of which the longest is a pause of two
/// minutes.
const MARGIN: Duration = Duration::from_secs(10 * 60);

/// The age up to which the time of a cache's version is known.
const REACH: Duration = Duration::from_secs(60 * 60);

/// An incarnation of a process.
struct Incarnation {
    began: Duration,
    /// Its caches; none if it has not been asked since it began.
    caches: Option<BTreeMap<Kind, Cached>>,
    /// Whether a backup was restored since it was asked.
    is_restored: bool,
    /// Kinds of which several namespaces are selected.
    ///
    /// A cache has the version of only one of their watches, the last that reported one.
    scattered: BTreeSet<Kind>,
}

/// One cache.
#[derive(Debug, Clone, Copy)]
struct Cached {
    /// It has all that was committed by then.
    until: Duration,
    trust: Trust,
}

/// Whether the version of a cache is one of this epoch.
#[derive(Debug, Clone, Copy)]
enum Trust {
    Yes,
    /// A backup was restored, and the cache has not been asked since.
    Restored,
    /// A backup was restored, and the cache had been read so many times by then.
    ///
    /// Objects read by then may be from before the restore, unless their version is newer than any from before.
    ///
    /// A cache that was read again between the restore and the question is not read once more for it.
    Loads(u64),
}

impl Horizon {
    pub(super) fn saw(&mut self, moment: &Moment, event: &Event) {
        match event {
            Event::Committed(commit) => self.committed(commit, moment.at),
            Event::IncarnationBegan(incarnation) => {
                self.incarnations
                    .insert(incarnation.clone(), Incarnation::new(moment.at));
            }
            Event::IncarnationEnded(incarnation) => {
                self.incarnations.remove(incarnation);
            }
            Event::Cached { incarnation, kinds } => self.asked(incarnation, kinds, moment.at),
            Event::Selected {
                incarnation,
                kind,
                selection,
            } => {
                if let Some(incarnation) = self.incarnations.get_mut(incarnation) {
                    incarnation.select(name_of(kind), selection.namespaces().len());
                }
            }
            _ => {}
        }
    }

    fn committed(&mut self, commit: &Commit, at: Duration) {
        let version = match commit {
            Commit::Stored(object) | Commit::Removed { last: object } => object.revision(),
            Commit::Reset { revision } => return self.reset(*revision, at),
            _ => return,
        };
        // What a backup holds comes after it, in the order of the keys.
        if self
            .commits
            .back()
            .is_some_and(|(last, _)| *last >= version)
        {
            return;
        }
        self.commits.push_back((version, at));
        while self
            .commits
            .front()
            .is_some_and(|(_, first)| *first + REACH < at)
        {
            self.commits.pop_front();
        }
    }

    fn reset(&mut self, revision: u64, at: Duration) {
        // A cache that shows a higher version than any of the epochs before must have read since the restore.
        let last = self.commits.back().map_or(0, |(version, _)| *version);
        self.before = self.before.max(last);
        self.commits = [(revision, at)].into();
        for incarnation in self.incarnations.values_mut() {
            incarnation.is_restored = true;
            let caches = incarnation.caches.iter_mut().flat_map(BTreeMap::values_mut);
            caches.for_each(|cached| cached.trust = Trust::Restored);
        }
    }

    /// Records the caches' versions of an incarnation.
    fn asked(&mut self, of: &IncarnationId, kinds: &[CacheProgress], now: Duration) {
        // Removed and inserted again, because `judge` borrows the whole of `self`.
        let mut incarnation = self
            .incarnations
            .remove(of)
            .unwrap_or(Incarnation::new(now));
        let before = incarnation.caches.take().unwrap_or_default();
        let caches = kinds.iter().map(|reached| {
            let kind = name_of(&reached.kind);
            let cached = before
                .get(&kind)
                .copied()
                .unwrap_or_else(|| incarnation.first(now));
            let is_scattered = incarnation.scattered.contains(&kind);
            let cached = self.judge(cached, reached, is_scattered, now);
            (kind, cached)
        });
        incarnation.caches = Some(caches.collect());
        incarnation.is_restored = false;
        self.incarnations.insert(of.clone(), incarnation);
    }

    fn judge(
        &self,
        mut cached: Cached,
        reached: &CacheProgress,
        is_scattered: bool,
        now: Duration,
    ) -> Cached {
        let complete = reached.complete.filter(|_| !is_scattered);
        let is_new = complete.is_some_and(|version| version > self.before);
        match cached.trust {
            Trust::Restored | Trust::Loads(_) if is_new => cached.trust = Trust::Yes,
            // The first answer after the restore: a read that had begun by then may still show the old states.
            Trust::Restored => cached.trust = Trust::Loads(reached.loads),
            Trust::Loads(before) if reached.loads > before => cached.trust = Trust::Yes,
            Trust::Yes | Trust::Loads(_) => {}
        }
        let complete = complete.filter(|_| matches!(cached.trust, Trust::Yes));
        if let Some(until) = complete.and_then(|version| self.time_of(version, now)) {
            // Never back: what was known to be complete stays so, even if the version of a later sample is unknown.
            cached.until = cached.until.max(until);
        }
        cached
    }

    /// Returns up to when a cache has everything that has everything up to a version.
    fn time_of(&self, version: u64, now: Duration) -> Option<Duration> {
        let next = self.commits.partition_point(|(of, _)| *of <= version);
        match self.commits.get(next) {
            // The one before the first that is known may have been any.
            Some(_) if next == 0 => None,
            Some((_, at)) => Some(*at),
            None => Some(now),
        }
    }

    /// Returns the time by which a state was followed that no process can show now.
    ///
    /// None if that is not known.
    pub(super) fn of(&self, kind: &Kind) -> Option<Duration> {
        let incarnations = self.incarnations.values();
        let until = incarnations.filter_map(|incarnation| match &incarnation.caches {
            // A process that was never asked may have read anything since its beginning.
            None => Some(incarnation.began),
            Some(caches) => caches.get(kind).map(|cached| cached.until),
        });
        let oldest = until.min().or(self.commits.back().map(|(_, at)| *at))?;
        oldest.checked_sub(MARGIN)
    }
}

impl Incarnation {
    fn new(began: Duration) -> Self {
        Self {
            began,
            caches: None,
            is_restored: false,
            scattered: BTreeSet::new(),
        }
    }

    fn select(&mut self, kind: Kind, namespaces: usize) {
        if namespaces > 1 {
            self.scattered.insert(kind);
        } else {
            self.scattered.remove(&kind);
        }
    }

    /// A cache that was not there when the incarnation was asked before.
    fn first(&self, now: Duration) -> Cached {
        let trust = if self.is_restored {
            Trust::Restored
        } else {
            Trust::Yes
        };
        Cached { until: now, trust }
    }
}
