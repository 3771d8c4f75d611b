//! State of incarnations that checkers keep: their handlers, and whether their factory runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use lariat_sim::internals::{Activity, ActivityKind, Event, IncarnationId, Moment};

/// The incarnations of processes that report what they do.
#[derive(Default)]
pub(super) struct Incarnations(BTreeMap<IncarnationId, IncarnationState>);

/// The state of an incarnation.
#[derive(Default)]
pub(super) struct IncarnationState {
    /// None until the program reports its first start.
    pub(super) runs: Option<bool>,
    /// Whether a stop is under way: what comes due waits for the next start.
    pub(super) stops: bool,
    /// Since when the process has run and its factory has not been started or stopped.
    pub(super) since: Duration,
    /// For how long the process was paused, all together.
    paused: Duration,
    paused_at: Option<Duration>,
    /// Registered handlers with their limits.
    pub(super) handlers: BTreeMap<(Gvk, Arc<str>), Option<usize>>,
    /// Calls under way, by kind and key.
    pub(super) running: BTreeSet<(Gvk, ObjectKey)>,
}

impl IncarnationState {
    /// Returns for how long the process has run, pauses left out.
    pub(super) fn awake(&self, now: Duration) -> Duration {
        let paused = self.paused_at.map(|at| now.saturating_sub(at));
        now.saturating_sub(self.paused + paused.unwrap_or_default())
    }

    /// Returns the handlers of a kind.
    pub(super) fn handlers_of<'a>(
        &'a self,
        kind: &'a Gvk,
    ) -> impl Iterator<Item = (&'a Arc<str>, Option<usize>)> {
        let handlers = self.handlers.iter();
        handlers
            .filter(move |((of, _), _)| of == kind)
            .map(|((_, name), limit)| (name, *limit))
    }

    fn act(&mut self, what: &ActivityKind, at: Duration) {
        match what {
            ActivityKind::Starting(_) | ActivityKind::Stopped => {
                self.runs = Some(matches!(what, ActivityKind::Starting(_)));
                // Bounds on calls count from the last of these, since nothing is called in between.
                (self.stops, self.since) = (false, at);
            }
            ActivityKind::Stopping(_) => self.stops = true,
            ActivityKind::Paused => self.paused_at = Some(at),
            ActivityKind::Resumed => {
                let paused = self.paused_at.take().map(|since| at.saturating_sub(since));
                self.paused += paused.unwrap_or_default();
                self.since = at;
            }
            ActivityKind::Registered { kind, name, limit } => {
                self.handlers
                    .insert((kind.clone(), Arc::clone(name)), *limit);
            }
            ActivityKind::Deregistered { kind, name } => {
                self.handlers.remove(&(kind.clone(), Arc::clone(name)));
            }
            _ => {}
        }
    }
}

impl Incarnations {
    /// Records an event. A checker calls it before it looks at the event itself, so a call that ends is not in
    /// `running`.
    pub(super) fn saw(&mut self, moment: &Moment, event: &Event) {
        match event {
            Event::IncarnationBegan(incarnation) => {
                self.0
                    .insert(incarnation.clone(), IncarnationState::default());
            }
            Event::IncarnationEnded(incarnation) => {
                self.0.remove(incarnation);
            }
            Event::Acted(Activity { incarnation, what }) => {
                let state = self.0.entry(incarnation.clone()).or_default();
                state.act(what, moment.at);
            }
            Event::Began { handler, key, .. } | Event::Ended { handler, key, .. } => {
                let state = self.0.entry(handler.incarnation.clone()).or_default();
                let place = (handler.kind.clone(), key.clone());
                if matches!(event, Event::Began { .. }) {
                    state.running.insert(place);
                } else {
                    state.running.remove(&place);
                }
            }
            _ => {}
        }
    }

    pub(super) fn of(&self, incarnation: &IncarnationId) -> Option<&IncarnationState> {
        self.0.get(incarnation)
    }
}
