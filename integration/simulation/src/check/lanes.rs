//! The handlers that a run calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_core::{Cause, Causes, ObjectKey};
use lariat_sim::internals::{Event, HandlerId, Moment, Next};

use super::{Check, Findings};
use crate::oracle::Oracle;

/// After a failure only the handlers that failed are called again.
///
/// A run that nothing but retries brought about (`Causes::is_retry`) calls no handler its causes do not name.
#[derive(Default)]
pub(super) struct OnlyFailed;

impl Check for OnlyFailed {
    fn name(&self) -> &'static str {
        "only failed handlers are retried"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        let Event::Began {
            handler,
            key,
            causes,
            ..
        } = event
        else {
            return Vec::new();
        };
        let is_named = |cause: &Cause| matches!(cause, Cause::Retry { handler: name, .. } if *name == handler.name);
        // Causes are kept up to a maximum; one that was omitted may name the handler.
        if !causes.is_retry() || causes.omitted() > 0 || causes.iter().any(is_named) {
            return Vec::new();
        }
        vec![format!(
            "{} is called for {} {key} because of other handlers: {causes}",
            handler.name,
            handler.kind.kind()
        )]
    }
}

/// A late handler is called alone, and once for each existing object.
///
/// Where a late handler is the only cause, no other handler is called; and the same handler not a second time, unless
/// the call before was dropped. A call that failed comes again as a retry.
#[derive(Default)]
pub(super) struct LateOnce {
    replayed: BTreeSet<(HandlerId, ObjectKey)>,
    /// Handlers whose registration was reported; others may leave and come back unseen.
    reported: BTreeSet<HandlerId>,
}

/// Returns the late handler that is all there is to the causes.
fn only_late(causes: &Causes) -> Option<&Arc<str>> {
    let mut late = None;
    for cause in causes.iter() {
        let Cause::LateHandler { handler } = cause else {
            return None;
        };
        if late.is_some_and(|late| late != handler) {
            return None;
        }
        late = Some(handler);
    }
    late.filter(|_| causes.omitted() == 0)
}

impl Check for LateOnce {
    fn name(&self) -> &'static str {
        "a late handler is called alone and once"
    }

    fn saw(&mut self, _: &Oracle, _: &Moment, event: &Event) -> Findings {
        match event {
            Event::Began {
                handler,
                key,
                causes,
                ..
            } => {
                let Some(late) = only_late(causes) else {
                    return Vec::new();
                };
                let kind = handler.kind.kind();
                if *late != handler.name {
                    return vec![format!(
                        "{} is called for {kind} {key} because {late} was registered",
                        handler.name
                    )];
                }
                let is_new = self.replayed.insert((handler.clone(), key.clone()));
                if !is_new && self.reported.contains(handler) {
                    return vec![format!(
                        "{} is called twice for {kind} {key} because it was registered",
                        handler.name
                    )];
                }
            }
            Event::Ended {
                handler,
                key,
                next: Next::Dropped,
                ..
            } => {
                // A dropped call comes again with the causes it had.
                self.replayed.remove(&(handler.clone(), key.clone()));
            }
            Event::Acted(activity) => {
                if let Some(handler) = activity.registered() {
                    // A handler that comes back under its name is shown all objects again.
                    self.replayed.retain(|(of, _)| *of != handler);
                    self.reported.insert(handler);
                } else if let Some(handler) = activity.deregistered() {
                    self.replayed.retain(|(of, _)| *of != handler);
                }
            }
            Event::IncarnationEnded(incarnation) => {
                let is_other = |of: &HandlerId| of.incarnation != *incarnation;
                self.replayed.retain(|(of, _)| is_other(of));
                self.reported.retain(is_other);
            }
            _ => {}
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::harness::CheckHarness;

    fn retry_of(name: &str) -> Causes {
        let added = Cause::Added { version: 1.into() };
        let (handler, failures) = (Arc::from(name), 1);
        Causes::from(added).retried(Cause::Retry { handler, failures })
    }

    #[test]
    fn a_handler_that_did_not_fail_is_found_in_a_retry() {
        let mut harness = CheckHarness::of(OnlyFailed);
        harness.begins(0, "h", "a", retry_of("h"));
        let mut with_news = retry_of("h");
        with_news.push(Cause::Resync);
        harness.begins(1, "g", "a", with_news);
        assert_eq!(harness.found(), 0);
        harness.begins(2, "g", "a", retry_of("h"));
        assert_eq!(harness.found(), 1);
    }

    #[test]
    fn a_late_handler_is_replayed_once_and_alone() {
        let late = || Cause::LateHandler {
            handler: Arc::from("h"),
        };
        let mut harness = CheckHarness::of(LateOnce::default());
        harness.registered("h", None);
        harness.begins(0, "h", "a", late().into());
        harness.ends(0, "h", "a", Next::Dropped);
        harness.calls(1, "h", "a", late());
        harness.calls(1, "h", "b", late());
        assert_eq!(harness.found(), 0);
        harness.calls(2, "h", "a", late());
        harness.calls(2, "g", "a", late());
        assert_eq!(harness.found(), 2);
    }
}
