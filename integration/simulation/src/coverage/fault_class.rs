//! Classes of faults.

use lariat_sim::internals::{FaultKind, MetFault, ProcessFault};

use super::ProcessState;

/// Faults, in groups that look the same to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultClass {
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

impl FaultClass {
    pub(super) const ALL: [Self; 17] = [
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
    pub(crate) fn of(fault: MetFault) -> Option<Self> {
        match fault {
            MetFault::Cluster(fault) => Self::of_cluster_fault(fault),
            MetFault::Process(fault) => Some(Self::of_process_fault(fault)),
        }
    }

    fn of_cluster_fault(fault: FaultKind) -> Option<Self> {
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

    fn of_process_fault(process_fault: ProcessFault) -> Self {
        match process_fault {
            ProcessFault::Kill(_) => Self::Kill,
            ProcessFault::Restart(_) => Self::Restart,
            ProcessFault::Pause(_) => Self::Pause,
            ProcessFault::Clock(_) => Self::Clock,
        }
    }

    pub(super) fn name(self) -> &'static str {
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
    pub(super) fn meets(self, state: ProcessState) -> bool {
        match (self, state) {
            // A paused process sends no request that a rule could match.
            (
                Self::WatchFallsSilent
                | Self::BodyCut
                | Self::Refused
                | Self::NoAnswer
                | Self::AnswerLost
                | Self::OldStates
                | Self::Conflict,
                ProcessState::Paused,
            ) => false,
            // One that is paused already, or is asked to end already, stays so.
            (Self::Pause, ProcessState::Paused) | (Self::Restart, ProcessState::Stopping) => false,
            _ => true,
        }
    }
}
