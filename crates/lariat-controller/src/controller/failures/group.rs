//! Counts the failures of one handler with the same error, and decides when they are logged.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::time::Instant;

use super::Failed;
use super::line::{Line, LineKind};

/// The intervals between summary lines, each counted from the line before.
const INTERVALS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(600),
];

/// The delay between the success of the last failing key and its log line.
///
/// Other keys may begin to fail in the meantime; then nothing has recovered.
const RECOVERY: Duration = Duration::from_secs(1);

/// How long a group without failures is kept, at least for its current interval.
///
/// Afterwards the next failure counts as the first again, and is logged immediately.
const QUIET: Duration = Duration::from_secs(60);

/// The number of keys a line names as examples.
const EXAMPLES: usize = 3;

/// The failures of one handler with the same error.
pub(super) struct Group {
    pub(super) signature: u64,
    is_final: bool,
    error: Arc<str>,
    /// The number of tracked keys that fail now.
    keys: usize,
    /// Whether more keys fail than are tracked.
    are_more: bool,
    /// Examples of keys that failed since the last line.
    examples: Vec<ObjectKey>,
    /// The first keys that lines have named, at most [`EXAMPLES`].
    named: Vec<ObjectKey>,
    /// The number of failures since the last line.
    folded: u64,
    /// The number of failures since `began`.
    total: u64,
    began: Instant,
    last: Instant,
    /// When the last failing key succeeded; none while keys fail.
    recovered: Option<Instant>,
    /// Whether the last line reported failing keys rather than a recovery.
    is_failing_logged: bool,
    next: Instant,
    /// The index of the current interval.
    step: usize,
}

impl Group {
    pub(super) fn new(signature: u64, failed: &Failed<'_>, now: Instant) -> Self {
        Self {
            signature,
            is_final: failed.next.is_final(),
            error: Arc::clone(failed.error),
            keys: 0,
            are_more: false,
            examples: Vec::new(),
            named: vec![failed.key.clone()],
            folded: 0,
            total: 0,
            began: now,
            last: now,
            recovered: None,
            is_failing_logged: true,
            next: now + INTERVALS[0],
            step: 0,
        }
    }

    /// Counts a failure; returns a line if it is the first.
    pub(super) fn add(
        &mut self,
        failed: &Failed<'_>,
        now: Instant,
        is_first: bool,
    ) -> Option<Line> {
        self.total += 1;
        (self.last, self.recovered) = (now, None);
        if is_first {
            return Some(Line::first(failed));
        }
        self.folded += 1;
        if self.examples.len() < EXAMPLES && !self.examples.contains(failed.key) {
            self.examples.push(failed.key.clone());
        }
        self.error = Arc::clone(failed.error);
        None
    }

    /// Records that a key fails.
    ///
    /// `is_counted` says that the key is in this group already, `is_known` that there was room to track it.
    pub(super) fn holds(&mut self, is_counted: bool, is_known: bool) {
        self.keys += usize::from(is_known && !is_counted);
        self.are_more |= !is_known;
    }

    /// Records that a key no longer fails with this error.
    ///
    /// Returns whether it was the last key of the group and has succeeded.
    pub(super) fn release(&mut self, success: Option<Instant>) -> bool {
        self.keys = self.keys.saturating_sub(1);
        let Some(now) = success.filter(|_| self.keys == 0) else {
            return false;
        };
        self.are_more = false;
        self.recovered = Some(now);
        true
    }

    /// Returns when [`tick`](Self::tick) has something to do.
    pub(super) fn due(&self) -> Instant {
        match self.recovered {
            Some(at) if self.is_failing_logged => at + RECOVERY,
            // The last line was a recovery, so the key fails and recovers by turns. That is logged as rarely as a key
            // that only fails.
            Some(at) => self.next.max(at + RECOVERY),
            None if self.is_silent() => self.end(),
            None => self.next,
        }
    }

    /// Returns the line that is due at `now`, if any.
    pub(super) fn tick(&mut self, handler: &Arc<str>, now: Instant) -> Option<Line> {
        if self.due() > now || self.is_silent() && self.recovered.is_none() {
            return None;
        }
        if self.keys == 0 && self.folded == 0 {
            // No untracked key has failed for an interval.
            self.are_more = false;
        }
        let line = self.flush(handler, now);
        self.step = (self.step + 1).min(INTERVALS.len() - 1);
        self.next = now + INTERVALS[self.step];
        line
    }

    /// Returns a line about failures that were counted but not logged.
    pub(super) fn flush(&mut self, handler: &Arc<str>, now: Instant) -> Option<Line> {
        let has_recovered = self.recovered.take().is_some();
        let line_kind = match self.is_final {
            _ if has_recovered => LineKind::Recovered,
            _ if self.folded == 0 => return None,
            true if self.is_named() => LineKind::FinallyAgain,
            true => LineKind::FinallyMore,
            false => LineKind::Still,
        };
        let line = self.line(handler, line_kind, now);
        self.is_failing_logged = !has_recovered;
        if has_recovered {
            (self.total, self.began) = (0, now);
        }
        Some(line)
    }

    /// Returns whether earlier lines name all keys that failed since the last line.
    fn is_named(&self) -> bool {
        // With as many examples as there is room for, there may be keys that are not among them.
        self.examples.len() < EXAMPLES && self.examples.iter().all(|key| self.named.contains(key))
    }

    /// Returns whether the group can be dropped: the next failure counts as the first.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.is_silent() && self.recovered.is_none() && now >= self.end()
    }

    fn end(&self) -> Instant {
        self.last + QUIET.max(INTERVALS[self.step])
    }

    /// Returns whether no key fails and no failure is unlogged.
    fn is_silent(&self) -> bool {
        self.keys == 0 && !self.are_more && self.folded == 0
    }

    fn line(&mut self, handler: &Arc<str>, line_kind: LineKind, now: Instant) -> Line {
        let failures = match line_kind {
            LineKind::Recovered => self.total,
            _ => self.folded,
        };
        self.folded = 0;
        let keys = std::mem::take(&mut self.examples);
        for key in &keys {
            if self.named.len() < EXAMPLES && !self.named.contains(key) {
                self.named.push(key.clone());
            }
        }
        let more = if self.are_more { "more than " } else { "" };
        Line {
            line_kind,
            handler: Arc::clone(handler),
            error: Arc::clone(&self.error),
            keys,
            failures,
            failing: format!("{more}{}", self.keys),
            lasted: now - self.began,
            ..Line::default()
        }
    }
}
