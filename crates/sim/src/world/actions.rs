//! The actions of the cluster's rules for each fault.

use lariat_cluster::faults::{Action, After, Refusal, StatusCode};

use crate::plan::FaultKind;

/// Returns whether a fault meets reads or watches, with any verb of the plan.
pub(super) fn is_about_watches(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::CutWatchAfter(_)
            | FaultKind::HangWatch(_)
            | FaultKind::Expire
            | FaultKind::StaleRead
            | FaultKind::SkipStates
            | FaultKind::RefuseWatchList
            | FaultKind::Conflict
    )
}

/// Returns the action of a rule for a fault; none if it takes no rule.
pub(super) fn action(kind: FaultKind) -> Option<Action> {
    let refuse = |code: u16| {
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Action::Refuse(Refusal::new(code))
    };
    Some(match kind {
        FaultKind::CutWatchAfter(events) => Action::CutWatch(After::Events(events)),
        FaultKind::HangWatch(events) => Action::HangWatch(After::Events(events)),
        FaultKind::Expire => Action::Expire,
        FaultKind::Gone => Action::Gone,
        FaultKind::TooManyRequests => Action::Refuse(Refusal::too_many_requests()),
        FaultKind::ServerError(code) => refuse(code),
        FaultKind::Delay(delay) => Action::Delay(delay),
        FaultKind::DelayReply(delay) => Action::DelayReply(delay),
        FaultKind::NoReply => Action::NoReply,
        FaultKind::CutBody(bytes) => Action::CutBody(bytes),
        FaultKind::MaxInflight(requests) => Action::LimitRequests(requests),
        FaultKind::Bandwidth(bytes) => Action::Bandwidth(bytes),
        FaultKind::NoAnswer => Action::NoAnswer,
        FaultKind::Disconnect => Action::Disconnect,
        FaultKind::LoseReply => Action::LoseReply,
        FaultKind::StaleRead => Action::StaleRead,
        FaultKind::Conflict => Action::Conflict,
        FaultKind::SkipVersions(versions) => Action::SkipVersions(versions),
        FaultKind::SkipStates => Action::SkipStates,
        FaultKind::RefuseWatchList => Action::RefuseWatchList,
        _ => return None,
    })
}
