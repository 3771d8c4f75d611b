//! Planned breaks of watches.

use tokio::time::Instant;

use crate::fault::{Action, After};
use crate::store::Ending;

/// A break that waits for its moment.
#[derive(Debug)]
pub(super) struct PlannedBreak {
    pub(super) breaks: Break,
    when: When,
}

/// The way in which a watch breaks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Break {
    End(Ending),
    /// Nothing more comes, not even the end.
    Hang,
}

#[derive(Debug)]
enum When {
    /// So many lines are still to be sent.
    Lines(usize),
    At(Instant),
}

impl PlannedBreak {
    /// Plans the break of an action, if it is one.
    pub(super) fn of(action: &Action, now: Instant) -> Option<Self> {
        let (breaks, after) = match action {
            Action::EndWatch(after) => (Break::End(Ending::Clean), after),
            Action::CutWatch(after) => (Break::End(Ending::Cut), after),
            Action::HangWatch(after) => (Break::Hang, after),
            _ => return None,
        };
        let when = match after {
            After::Events(events) => When::Lines(*events),
            // A time beyond the clock's end never comes.
            After::Time(time) => When::At(now.checked_add(*time)?),
        };
        Some(Self { breaks, when })
    }

    /// Counts a line that is sent.
    pub(super) fn count(&mut self) {
        if let When::Lines(left) = &mut self.when {
            *left = left.saturating_sub(1);
        }
    }

    pub(super) fn is_due(&self) -> bool {
        match self.when {
            When::Lines(left) => left == 0,
            When::At(at) => Instant::now() >= at,
        }
    }

    /// Returns the time it is due, if that is a matter of time.
    pub(super) fn at(&self) -> Option<Instant> {
        match self.when {
            When::Lines(_) => None,
            When::At(at) => Some(at),
        }
    }
}
