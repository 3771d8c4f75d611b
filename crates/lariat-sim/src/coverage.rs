//! How often each thing that goes wrong met each state of a process.
//!
//! A seed that finds nothing says little unless the interleavings that matter happened: a fault counts when it had an
//! effect, such as a request that a rule refused, and it counts once for each state the process was in at that moment.

use std::fmt;
use std::ops::AddAssign;

use lariat_cache::{KindStatus, Phase};
use lariat_controller::ControllerStatus;

use crate::plan::{Fate, FaultKind};

/// What goes wrong, in groups whose members a process can hardly tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    WatchEnds,
    WatchFallsSilent,
    BodyCut,
    Expired,
    Refused,
    Slow,
    NoAnswer,
    AnswerLost,
    OldStates,
    Conflict,
    Cut,
    Restored,
    Limited,
    Kill,
    Restart,
    Pause,
    Clock,
}

/// What a process is doing; it may do several things at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// A cache is filled for the first time.
    Filling,
    /// A filled cache is read again, or waits for a watch to be opened again.
    LoadingAgain,
    /// All caches are kept by watches.
    Watching,
    /// A request failed, and is tried again after a pause.
    BackingOff,
    /// A handler is being called.
    Calling,
    /// A write was sent, and is not answered.
    Writing,
    /// Keys wait for a handler at its limit of calls.
    AtLimit,
    /// A handler was registered after the cache was filled, and has not been called.
    LateHandler,
    /// The program was asked to end.
    Stopping,
    /// The process does not run.
    Paused,
    /// It was killed or ended before.
    SecondLife,
}

impl Trouble {
    const ALL: [Self; 17] = [
        Self::WatchEnds,
        Self::WatchFallsSilent,
        Self::BodyCut,
        Self::Expired,
        Self::Refused,
        Self::Slow,
        Self::NoAnswer,
        Self::AnswerLost,
        Self::OldStates,
        Self::Conflict,
        Self::Cut,
        Self::Restored,
        Self::Limited,
        Self::Kill,
        Self::Restart,
        Self::Pause,
        Self::Clock,
    ];

    /// Returns the group of a fault; none if it does nothing to a process by itself.
    pub(crate) fn of(fault: FaultKind) -> Option<Self> {
        Some(match fault {
            FaultKind::CutWatches | FaultKind::EndWatches | FaultKind::CutWatchAfter(_) => {
                Self::WatchEnds
            }
            FaultKind::HangWatch(_) => Self::WatchFallsSilent,
            FaultKind::CutBody(_) => Self::BodyCut,
            FaultKind::Expire | FaultKind::Gone | FaultKind::Compact => Self::Expired,
            FaultKind::TooManyRequests | FaultKind::ServerError(_) | FaultKind::NotServed => {
                Self::Refused
            }
            FaultKind::Delay(_)
            | FaultKind::DelayReply(_)
            | FaultKind::Bandwidth(_)
            | FaultKind::Latency(_) => Self::Slow,
            FaultKind::NoAnswer | FaultKind::NoReply => Self::NoAnswer,
            FaultKind::Disconnect | FaultKind::LoseReply => Self::AnswerLost,
            FaultKind::StaleRead | FaultKind::SkipVersions(_) | FaultKind::SkipStates => {
                Self::OldStates
            }
            FaultKind::Conflict => Self::Conflict,
            FaultKind::Away | FaultKind::Blackhole => Self::Cut,
            FaultKind::Restore => Self::Restored,
            FaultKind::Streams(_) | FaultKind::MaxInflight(_) => Self::Limited,
            // A backup does nothing, and what a server does not offer is an ordinary way to be served.
            _ => return None,
        })
    }

    pub(crate) fn of_fate(fate: Fate) -> Self {
        match fate {
            Fate::Kill(_) => Self::Kill,
            Fate::Restart(_) => Self::Restart,
            Fate::Pause(_) => Self::Pause,
            Fate::Clock(_) => Self::Clock,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::WatchEnds => "watch ends",
            Self::WatchFallsSilent => "watch falls silent",
            Self::BodyCut => "body is cut",
            Self::Expired => "410, compaction",
            Self::Refused => "429, 5xx",
            Self::Slow => "slow answer",
            Self::NoAnswer => "no answer",
            Self::AnswerLost => "connection breaks",
            Self::OldStates => "stale, skipped",
            Self::Conflict => "conflict",
            Self::Cut => "server away",
            Self::Restored => "backup restored",
            Self::Limited => "requests limited",
            Self::Kill => "killed",
            Self::Restart => "restarted",
            Self::Pause => "paused",
            Self::Clock => "clock jumps",
        }
    }

    /// Returns whether the two can meet.
    fn meets(self, state: State) -> bool {
        match (self, state) {
            // What is paused sends no request that a rule could match.
            (
                Self::WatchFallsSilent
                | Self::BodyCut
                | Self::Refused
                | Self::NoAnswer
                | Self::AnswerLost
                | Self::OldStates
                | Self::Conflict,
                State::Paused,
            ) => false,
            // Updates conflict, not reads; a process that stops or has just begun hardly writes.
            (
                Self::Conflict,
                State::Filling | State::Stopping | State::LateHandler | State::AtLimit,
            ) => false,
            // One that is paused already, or is asked to end already, stays so.
            (Self::Pause, State::Paused) | (Self::Restart, State::Stopping) => false,
            _ => true,
        }
    }
}

impl State {
    const ALL: [Self; 11] = [
        Self::Filling,
        Self::LoadingAgain,
        Self::Watching,
        Self::BackingOff,
        Self::Calling,
        Self::Writing,
        Self::AtLimit,
        Self::LateHandler,
        Self::Stopping,
        Self::Paused,
        Self::SecondLife,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Filling => "filling",
            Self::LoadingAgain => "loading again",
            Self::Watching => "watching",
            Self::BackingOff => "backing off",
            Self::Calling => "calling",
            Self::Writing => "writing",
            Self::AtLimit => "at limit",
            Self::LateHandler => "late handler",
            Self::Stopping => "stopping",
            Self::Paused => "paused",
            Self::SecondLife => "second life",
        }
    }
}

/// The states of a process at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct States(u16);

impl States {
    pub(crate) fn set(&mut self, state: State, is: bool) {
        self.0 |= u16::from(is) << state as u16;
    }

    /// Adds what the caches and controllers of a process say.
    pub(crate) fn of(mut self, caches: &[KindStatus], controllers: &[ControllerStatus]) -> Self {
        let is_loading = |cache: &KindStatus| matches!(cache.phase, Phase::Listing { .. });
        let is_again = |cache: &&KindStatus| is_loading(cache) || cache.interrupted.is_some();
        let mut filled = caches.iter().filter(|cache| cache.loads > 0);
        self.set(State::LoadingAgain, filled.any(|cache| is_again(&cache)));
        let mut first = caches.iter().filter(|cache| cache.loads == 0);
        self.set(State::Filling, first.any(is_loading));
        let is_kept = |cache: &KindStatus| cache.phase == Phase::Synced && !is_again(&cache);
        self.set(
            State::Watching,
            !caches.is_empty() && caches.iter().all(is_kept),
        );
        self.set(
            State::BackingOff,
            caches.iter().any(|cache| cache.retry_in.is_some()),
        );
        for controller in controllers {
            let is_filled = controller.cache.loads > 0 && controller.workers.is_some();
            self.set(State::Calling, controller.queue.held > 0);
            for handler in &controller.handlers {
                self.set(State::AtLimit, handler.waiting > 0);
                self.set(State::LateHandler, is_filled && handler.runs == 0);
            }
        }
        self
    }

    fn has(self, state: State) -> bool {
        self.0 >> state as u16 & 1 == 1
    }
}

/// How often each trouble met each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Coverage([[u64; State::ALL.len()]; Trouble::ALL.len()]);

impl Coverage {
    /// Counts what went wrong while a process was in some states.
    pub(crate) fn met(&mut self, trouble: Trouble, states: States) {
        for state in State::ALL {
            self.0[trouble as usize][state as usize] += u64::from(states.has(state));
        }
    }

    /// Returns what never met although it can.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for trouble in Trouble::ALL {
            for state in State::ALL {
                if self.0[trouble as usize][state as usize] == 0 && trouble.meets(state) {
                    missing.push(format!("{} × {}", trouble.name(), state.name()));
                }
            }
        }
        missing
    }
}

impl AddAssign<&Coverage> for Coverage {
    fn add_assign(&mut self, other: &Self) {
        for (all, more) in self.0.iter_mut().zip(&other.0) {
            for (all, more) in all.iter_mut().zip(more) {
                *all += more;
            }
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<19}", "")?;
        for state in State::ALL {
            write!(f, " {:>13}", state.name())?;
        }
        for trouble in Trouble::ALL {
            write!(f, "\n{:<19}", trouble.name())?;
            for state in State::ALL {
                if trouble.meets(state) {
                    write!(f, " {:>13}", self.0[trouble as usize][state as usize])?;
                } else {
                    write!(f, " {:>13}", "–")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Coverage, State, States, Trouble};

    #[test]
    fn a_trouble_counts_for_every_state_at_that_moment() {
        let mut coverage = Coverage::default();
        let mut states = States::default();
        states.set(State::Watching, true);
        states.set(State::Writing, true);
        states.set(State::Paused, false);
        coverage.met(Trouble::Cut, states);
        let mut both = coverage.clone();
        both += &coverage;
        let missing = both.missing();
        assert!(!missing.contains(&"server away × watching".to_owned()));
        assert!(!missing.contains(&"server away × writing".to_owned()));
        assert!(missing.contains(&"server away × paused".to_owned()));
        assert!(both.to_string().contains("            2"), "{both}");
    }

    #[test]
    fn what_cannot_meet_is_not_missing() {
        let missing = Coverage::default().missing();
        assert!(missing.contains(&"killed × filling".to_owned()));
        assert!(!missing.contains(&"paused × paused".to_owned()));
    }

    #[test]
    fn rows_and_columns_are_in_the_order_of_their_numbers() {
        for (at, trouble) in Trouble::ALL.into_iter().enumerate() {
            assert_eq!(trouble as usize, at);
        }
        for (at, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, at);
        }
    }
}
