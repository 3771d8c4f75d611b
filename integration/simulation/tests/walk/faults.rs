//! Legal faults of a walk.

use std::time::Duration;

use http::StatusCode;
use lariat_cluster::faults::{Action, After, Refusal, Rule};

/// The beginning of the user agent of the program's client; other clients are left alone.
pub(crate) const PROGRAM: &str = "walker";

/// Returns a fault that a correct API server, network or client can cause.
pub(crate) fn any_fault(random: &mut fastrand::Rng) -> Rule {
    let seconds = Duration::from_secs(random.u64(1..20));
    let after = if random.bool() {
        After::Events(random.usize(..4))
    } else {
        After::Time(seconds)
    };
    let action = match random.u8(..25) {
        0 => Action::Delay(seconds),
        1 => Action::Refuse(Refusal::too_many_requests()),
        2 => Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE)),
        3 => Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR)),
        4 => Action::NoAnswer,
        5 => Action::Disconnect,
        6 => Action::LoseReply,
        7 => Action::DelayReply(seconds),
        8 => Action::Expire,
        9 => Action::Gone,
        10 => Action::StaleRead,
        11 => Action::EndWatch(after),
        12 => Action::CutWatch(after),
        13 => Action::HangWatch(after),
        14 => Action::RefuseWatchList,
        15 => Action::SkipStates,
        16 => Action::CutBody(random.usize(..3000)),
        17 => Action::Conflict,
        18 => Action::SkipVersions(random.u64(1..5000)),
        19 => Action::LegacyDiscovery,
        20 => Action::LimitRequests(random.usize(1..4)),
        21 => Action::Recreate(String::new()),
        22 => Action::Reject("not today".to_owned()),
        23 => Action::NoReply,
        _ => Action::Bandwidth(random.u64(200..5000)),
    };
    assert!(action.is_legal(), "{action:?}");
    let rule = Rule::new(action).client(PROGRAM).times(random.u64(1..6));
    let rule = rule.for_time(Duration::from_secs(random.u64(5..120)));
    match random.u8(..4) {
        0 => rule.verb("watch"),
        1 => rule.verb("list"),
        _ => rule,
    }
}
