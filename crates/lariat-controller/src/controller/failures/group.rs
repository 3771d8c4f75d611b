//! The failures of one handler that have one cause.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::time::Instant;

use super::Failed;
use super::line::{Line, LineKind};

/// When failures are summed up, each counted from the line before.
const INTERVALS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(10),
    Duration::from_secs(60),
    Duration::from_secs(600),
];

/// How long after the last key succeeded that is logged: others may begin to fail at the same moment.
const RECOVERY: Duration = Duration::from_secs(1);

/// After how long without a failure the next one counts as the first, if it was not summed up more rarely.
const QUIET: Duration = Duration::from_secs(60);

/// How many keys a line names.
const EXAMPLES: usize = 3;

pub(super) struct Group {
    pub(super) signature: u64,
    is_final: bool,
    error: Arc<str>,
    /// How many keys fail now, as far as they are known one by one.
    keys: usize,
    /// There are more keys than are known.
    are_more: bool,
    /// Keys that failed since the last line.
    examples: Vec<ObjectKey>,
    /// Failures since the last line.
    folded: u64,
    /// All failures since `began`.
    total: u64,
    began: Instant,
    last: Instant,
    /// Since when no key fails, if the last has succeeded.
    recovered: Option<Instant>,
    /// The last line says that keys fail.
    is_failing_logged: bool,
    next: Instant,
    /// How many of the intervals are over.
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

    /// Counts a failure; the first is logged.
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

    /// Notes that a key is failing: one that is counted already, or one there is no room to know.
    pub(super) fn holds(&mut self, is_counted: bool, is_known: bool) {
        self.keys += usize::from(is_known && !is_counted);
        self.are_more |= !is_known;
    }

    /// Notes that a key does not fail like this any more; returns whether that was the last and has succeeded.
    pub(super) fn release(&mut self, success: Option<Instant>) -> bool {
        self.keys = self.keys.saturating_sub(1);
        let Some(now) = success.filter(|_| self.keys == 0) else {
            return false;
        };
        self.are_more = false;
        self.recovered = Some(now);
        true
    }

    /// Returns when there is something to do.
    pub(super) fn due(&self) -> Instant {
        match self.recovered {
            Some(at) if self.is_failing_logged => at + RECOVERY,
            // What fails and succeeds by turns is summed up as rarely as what fails.
            Some(at) => self.next.max(at + RECOVERY),
            None if self.is_silent() => self.end(),
            None => self.next,
        }
    }

    /// Returns what is to be logged at some time.
    pub(super) fn tick(&mut self, handler: &Arc<str>, now: Instant) -> Option<Line> {
        if self.due() > now || self.is_silent() && self.recovered.is_none() {
            return None;
        }
        if self.keys == 0 && self.folded == 0 {
            // Of keys that are not known one by one none has failed for an interval.
            self.are_more = false;
        }
        let line = self.flush(handler, now);
        self.step = (self.step + 1).min(INTERVALS.len() - 1);
        self.next = now + INTERVALS[self.step];
        line
    }

    /// Returns what was counted and not logged.
    pub(super) fn flush(&mut self, handler: &Arc<str>, now: Instant) -> Option<Line> {
        let has_recovered = self.recovered.take().is_some();
        let line_kind = match self.is_final {
            _ if has_recovered => LineKind::Recovered,
            _ if self.folded == 0 => return None,
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

    /// Returns whether the next failure would be the first again.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.is_silent() && self.recovered.is_none() && now >= self.end()
    }

    fn end(&self) -> Instant {
        self.last + QUIET.max(INTERVALS[self.step])
    }

    /// Returns whether nothing fails and nothing is left to be logged.
    fn is_silent(&self) -> bool {
        self.keys == 0 && !self.are_more && self.folded == 0
    }

    fn line(&mut self, handler: &Arc<str>, line_kind: LineKind, now: Instant) -> Line {
        let failures = match line_kind {
            LineKind::Recovered => self.total,
            _ => self.folded,
        };
        self.folded = 0;
        let more = if self.are_more { "more than " } else { "" };
        Line {
            line_kind,
            handler: Arc::clone(handler),
            error: Arc::clone(&self.error),
            keys: std::mem::take(&mut self.examples),
            failures,
            failing: format!("{more}{}", self.keys),
            lasted: now - self.began,
            ..Line::default()
        }
    }
}
