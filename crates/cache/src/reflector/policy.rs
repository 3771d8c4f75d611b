//! The policy of a reflector: what follows the end of a list or a watch.

use std::time::{Duration, Instant};

use super::backoff::{Backoff, FailureClass};
use super::end::{End, NextStep, Stage};

/// A watch that ends sooner than this and without an event has failed.
pub(super) const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// A watch that lasted this long has worked, whatever ended it.
const LASTING_WATCH: Duration = Duration::from_secs(60);

/// The delay after a watch with events that was shorter than [`SHORTEST_WATCH`].
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// How many watches in a row may fail before a new list is tried instead.
const WATCH_ATTEMPTS: u32 = 5;

/// How many silent watches in a row make the server's history doubtful.
///
/// A server that was restored from a backup is silent until it has caught up.
const SILENT_WATCHES: u32 = 2;

/// The longest `Retry-After` that is followed.
///
/// A wrong clock of the server must not stop the informer.
const LONGEST_REST: Duration = Duration::from_secs(300);

/// Decides what a reflector does after a list or a watch has ended.
///
/// The reflector continues from the last version or lists again, after a delay. This is a state machine without
/// requests, clock and randomness: the same ends at the same times lead to the same decisions.
#[derive(Debug)]
pub(super) struct ReflectorPolicy {
    backoff: Backoff,
    streaming: Streaming,
    /// Whether the server is known to have the history of the store's objects.
    ///
    /// False after a failure, and at a start with objects of an earlier run.
    is_verified: bool,
    /// Consecutive failed watches for which their version may be the reason.
    failed_watches: u32,
    /// Consecutive watches that lasted and received nothing.
    silent_watches: u32,
}

/// A list, a watch or a check of the server's history, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempt {
    /// What ended.
    pub(super) stage: Stage,
    /// How it ended.
    pub(super) end: End,
    /// Whether an event was received before.
    pub(super) received: bool,
    /// How long it was open; zero if it was never opened.
    pub(super) lasted: Duration,
}

/// What a reflector does next, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decision {
    /// The next step.
    pub(super) next: NextStep,
    /// The delay before the step.
    pub(super) delay: Duration,
    /// Whether the end counts as a failure.
    pub(super) is_failure: bool,
}

impl Decision {
    fn at_once(next: NextStep) -> Self {
        Self {
            next,
            delay: Duration::ZERO,
            is_failure: false,
        }
    }
}

impl ReflectorPolicy {
    /// Creates the policy of a reflector.
    ///
    /// `streams` selects watch lists rather than lists for loading. `is_verified` lets the first watch continue without
    /// a check of the server's history.
    pub(super) fn new(streams: bool, is_verified: bool) -> Self {
        Self {
            backoff: Backoff::default(),
            streaming: Streaming::new(streams),
            is_verified,
            failed_watches: 0,
            silent_watches: 0,
        }
    }

    /// Returns whether the next load is a watch list rather than a list.
    pub(super) fn streams(&self, now: Instant) -> bool {
        self.streaming.is_on(now)
    }

    /// Returns whether the server is known to have the history of the store.
    pub(super) fn is_verified(&self) -> bool {
        self.is_verified
    }

    /// Records that the server may have another history.
    pub(super) fn suspect(&mut self) {
        self.is_verified = false;
    }

    /// Records that the server has the history of the store.
    pub(super) fn verified(&mut self) {
        (self.is_verified, self.silent_watches) = (true, 0);
    }

    /// Records that the server has forgotten the event to which the last watch went back.
    ///
    /// The version of the store may be expired too, and the list after that follows at once.
    pub(super) fn forgotten(&mut self) {
        self.backoff.forgotten();
    }

    /// Records that all objects were read.
    pub(super) fn loaded(&mut self) {
        self.verified();
        // The backoff is not reset: only a watch shows that the server works.
        self.failed_watches = 0;
        self.streaming.loaded();
        self.backoff.served();
    }

    /// Decides about the next step after an end.
    ///
    /// `jitter` is a random number from 0 to 1 that varies the delay.
    pub(super) fn ended(&mut self, attempt: &Attempt, now: Instant, jitter: f64) -> Decision {
        match attempt.stage {
            // The informer waits until the kind is served, so the reflector ends.
            _ if attempt.end == End::NotServed => Decision {
                is_failure: true,
                ..Decision::at_once(NextStep::Nothing)
            },
            Stage::List => self.failed(NextStep::Load, attempt.end, jitter),
            Stage::Stream => self.stream_ended(attempt.end, now, jitter),
            Stage::Watch => self.watch_ended(attempt, jitter),
            Stage::Check => self.check_ended(attempt.end, jitter),
        }
    }

    /// Decides about a watch list that ended before its end marker.
    fn stream_ended(&mut self, end: End, now: Instant, jitter: f64) -> Decision {
        // No failure: lists work with every server, so the next step follows at once.
        if refuses_streaming(end) {
            self.streaming.unsupported(now);
            return Decision::at_once(NextStep::Load);
        }
        // Counted, so that a kind that is too large for a watch list is listed in pages after some attempts.
        if lacks_version(end) {
            self.streaming.passed_over();
        } else if breaks_stream(end) {
            self.streaming.broke_off();
        }
        self.failed(NextStep::Load, end, jitter)
    }

    fn watch_ended(&mut self, attempt: &Attempt, jitter: f64) -> Decision {
        self.record_end(attempt);
        let Attempt {
            end,
            received,
            lasted,
            ..
        } = *attempt;
        // Events or a long time show that the watch worked, whatever ended it.
        let worked = received || lasted >= LASTING_WATCH;
        match end {
            // The usual end: the server closes each watch after its timeout.
            End::Closed => {}
            // A server that ends closes its watches in good order, and another one may be restored by now. The next
            // request may be sent once that one answers, so that nothing else fails.
            End::ClosedEarly => self.is_verified = false,
            // A connection may break at any time, so the next watch follows at once. But the server may have been
            // restored while it was not reachable, so its history is checked.
            End::Cut | End::Silent if worked => self.is_verified = false,
            _ => return self.watch_failed(end, jitter),
        }
        // A server that closes every watch after one event must not cause a hot loop.
        let delay = if lasted < SHORTEST_WATCH {
            REOPEN_PAUSE
        } else {
            Duration::ZERO
        };
        Decision {
            delay,
            ..Decision::at_once(NextStep::Watch)
        }
    }

    /// Updates the counters after the end of a watch.
    fn record_end(&mut self, attempt: &Attempt) {
        // Events of a malformed or expired watch are no sign that it works.
        let has_lasted = attempt.lasted >= LASTING_WATCH;
        if has_lasted || (attempt.received && !is_useless(attempt.end)) {
            self.backoff.reset();
            self.failed_watches = 0;
        }
        if attempt.received {
            self.silent_watches = 0;
        } else if has_lasted {
            self.silent_watches += 1;
        }
        // A restored server is silent until it has caught up, so its history is doubtful.
        self.is_verified &= self.silent_watches < SILENT_WATCHES;
    }

    fn check_ended(&mut self, end: End, jitter: f64) -> Decision {
        match end {
            // An outage, which says nothing about the version, however long it is: no list of each kind follows it.
            End::Refused {
                status: 502..=504, ..
            } => self.failed(NextStep::Watch, end, jitter),
            _ => self.watch_failed(end, jitter),
        }
    }

    /// Decides between another watch from the same version and a new list.
    fn watch_failed(&mut self, end: End, jitter: f64) -> Decision {
        self.failed_watches += u32::from(may_lie_in_version(end));
        // After some attempts the version itself is suspected, and a new list replaces it.
        let next = if keeps_version(end) && self.failed_watches <= WATCH_ATTEMPTS {
            NextStep::Watch
        } else {
            NextStep::Load
        };
        self.failed(next, end, jitter)
    }

    fn failed(&mut self, next: NextStep, end: End, jitter: f64) -> Decision {
        // A version expires on a server that was available all the time, so it is the one failure that is no sign of a
        // restore.
        self.is_verified &= end == End::Expired;
        Decision {
            next,
            delay: self.backoff.fail(failure_class(end), jitter),
            is_failure: true,
        }
    }

    /// Returns whether the last failed attempt was not answered.
    pub(super) fn is_away(&self) -> bool {
        self.backoff.is_away()
    }

    /// Returns whether the recent failures are usual for a starting server.
    pub(super) fn is_brief(&self) -> bool {
        self.backoff.is_brief()
    }
}

/// Returns whether the end of a watch casts doubt on its events.
pub(super) fn is_useless(end: End) -> bool {
    matches!(end, End::Malformed | End::Expired | End::OtherHistory)
}

/// Returns what a failure says about the server.
pub(super) fn failure_class(end: End) -> FailureClass {
    match end {
        End::Refused {
            retry_after: Some(asked),
            ..
        } => FailureClass::Postponed(asked.min(LONGEST_REST)),
        // A new list replaces the version, so both are treated alike.
        End::Expired | End::OtherHistory => FailureClass::Outdated,
        End::Unreachable | End::Unanswered => FailureClass::Unanswered,
        _ => FailureClass::Refused,
    }
}

/// Returns whether the API server does not support watch lists.
pub(super) fn refuses_streaming(end: End) -> bool {
    match end {
        End::NoEndMarker => true,
        // Codes for an invalid or unknown request. 403 and 404 are about the kind, not about watch lists.
        End::Refused { status, .. } => matches!(status, 400 | 405 | 406 | 415 | 422 | 501),
        _ => false,
    }
}

/// Returns whether the server's watch cache is not at the present version (504, `Too large resource version`).
///
/// A watch list waits for the cache, three seconds at most, which many at once make slower. A list need not wait.
fn lacks_version(end: End) -> bool {
    matches!(
        end,
        End::Refused {
            status: 504,
            retry_after: Some(_)
        }
    )
}

/// Returns whether a watch list may have ended because of its size or form.
///
/// A server that does not answer, is busy, or rejects credentials says nothing about that.
fn breaks_stream(end: End) -> bool {
    match end {
        End::Refused {
            status,
            retry_after,
        } => retry_after.is_none() && !matches!(status, 401 | 403 | 429 | 503),
        End::Unreachable | End::OtherHistory => false,
        _ => true,
    }
}

/// Returns whether a watch may have failed because of its version.
fn may_lie_in_version(end: End) -> bool {
    !matches!(
        failure_class(end),
        FailureClass::Postponed(_) | FailureClass::Outdated
    ) && end != End::Unreachable
}

/// Returns whether a failed watch may work from the same version later.
fn keeps_version(end: End) -> bool {
    match end {
        End::Unreachable | End::Unanswered | End::Cut | End::Silent | End::EndedImmediately => true,
        End::Refused { status, .. } => status == 429 || status >= 500,
        _ => false,
    }
}

/// How many watch lists in a row may fail before lists are used instead.
const ATTEMPTS: u32 = 3;

/// How long lists are used with a server that does not support watch lists.
///
/// It may be upgraded meanwhile.
const AGAIN_AFTER: Duration = Duration::from_secs(1800);

/// What is known about watch lists.
#[derive(Debug)]
struct Streaming {
    is_wanted: bool,
    /// Consecutive watch lists that failed before their end marker.
    broken: u32,
    /// Until when lists are used because the server does not support watch lists.
    unsupported_until: Option<Instant>,
}

impl Streaming {
    fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            broken: 0,
            unsupported_until: None,
        }
    }

    /// Returns whether the next load is a watch list.
    fn is_on(&self, now: Instant) -> bool {
        let is_unsupported = |until: Instant| now < until;
        self.is_wanted
            && self.broken < ATTEMPTS
            && !self.unsupported_until.is_some_and(is_unsupported)
    }

    /// Records that the server does not support watch lists.
    fn unsupported(&mut self, now: Instant) {
        self.unsupported_until = Some(now + AGAIN_AFTER);
    }

    /// Records that a watch list failed before its end marker.
    fn broke_off(&mut self) {
        self.broken += 1;
    }

    /// Lets the next load be a list.
    fn passed_over(&mut self) {
        self.broken = ATTEMPTS;
    }

    /// Records that all objects were read, by a list or a watch list.
    fn loaded(&mut self) {
        self.broken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a policy ends, one every ten seconds, and returns the last decision.
    fn decide(policy: &mut ReflectorPolicy, stage: Stage, ends: &[End]) -> Decision {
        let mut now = tokio::time::Instant::now().into_std();
        let mut last = None;
        for end in ends {
            now += Duration::from_secs(10);
            let attempt = Attempt {
                stage,
                end: *end,
                received: false,
                lasted: Duration::ZERO,
            };
            last = Some(policy.ended(&attempt, now, 0.5));
        }
        last.expect("there is an end")
    }

    #[test]
    fn outage_fails_checks_without_abandoning_version() {
        for (status, next) in [(503, NextStep::Watch), (500, NextStep::Load)] {
            let mut policy = ReflectorPolicy::new(false, true);
            let refused = End::Refused {
                status,
                retry_after: None,
            };
            let decision = decide(&mut policy, Stage::Check, &[refused; 20]);
            assert_eq!(decision.next, next, "{status}");
            assert!(!policy.is_verified());
        }
    }

    #[test]
    fn a_version_is_abandoned_after_five_failed_watches() {
        let mut policy = ReflectorPolicy::new(false, true);
        assert_eq!(
            decide(&mut policy, Stage::Watch, &[End::Cut; 5]).next,
            NextStep::Watch
        );
        assert_eq!(
            decide(&mut policy, Stage::Watch, &[End::Cut]).next,
            NextStep::Load
        );
        // A watch that never reached the server says nothing about the version.
        let mut policy = ReflectorPolicy::new(false, true);
        let unreachable = [End::Unreachable; 20];
        assert_eq!(
            decide(&mut policy, Stage::Watch, &unreachable).next,
            NextStep::Watch
        );
        assert!(!policy.is_verified());
    }

    #[test]
    fn a_server_without_watch_lists_is_asked_for_lists_for_half_an_hour() {
        let mut policy = ReflectorPolicy::new(true, true);
        let now = tokio::time::Instant::now().into_std();
        let refused = Attempt {
            stage: Stage::Stream,
            end: End::NoEndMarker,
            received: true,
            lasted: Duration::from_secs(10),
        };
        assert!(policy.streams(now));
        assert_eq!(
            policy.ended(&refused, now, 0.5),
            Decision::at_once(NextStep::Load)
        );
        assert!(!policy.streams(now + Duration::from_secs(1799)));
        assert!(policy.streams(now + Duration::from_secs(1800)));
    }

    #[test]
    fn too_large_resource_version_is_followed_by_one_list() {
        let mut policy = ReflectorPolicy::new(true, true);
        let now = tokio::time::Instant::now().into_std();
        let behind = End::Refused {
            status: 504,
            retry_after: Some(Duration::from_secs(1)),
        };
        let decision = decide(&mut policy, Stage::Stream, &[behind]);
        assert!(decision.delay >= Duration::from_secs(1));
        assert!(!policy.streams(now));
        policy.loaded();
        assert!(policy.streams(now));
    }

    #[test]
    fn the_same_ends_lead_to_the_same_decisions() {
        let ends = [End::Cut, End::Unanswered, End::Expired, End::Malformed];
        let decisions = || {
            let mut policy = ReflectorPolicy::new(true, false);
            ends.map(|end| decide(&mut policy, Stage::Watch, &[end, end]))
        };
        assert_eq!(decisions(), decisions());
    }
}
