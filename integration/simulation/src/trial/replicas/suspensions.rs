//! Suspensions of processes between two tries of a write.

use std::time::Duration;

use lariat_sim::internals::{Change, Fault, FaultKind, PlanStep, ProcessFault, StepAction, Write};

use crate::setup::Setup;

/// How long the writes of the process are refused, in milliseconds.
const REFUSED: u64 = 2_000;

/// How many objects of each kind are changed first, so that their handlers write.
const CHANGED: u16 = 4;

/// Suspends processes whose writes wait to be sent again, in one seed of three.
///
/// The server refuses the writes of a process with a `Retry-After`. The process is suspended for longer than its lease
/// lasts, and the server accepts writes again by the time it goes on. Its delays have passed by then, and the timer of
/// a write may run before the timer of the election. The write must not be sent: another process has taken over.
pub(super) fn suspensions(setup: &Setup, names: u16, lasts: Duration) -> Vec<PlanStep> {
    // A generator of its own leaves all other steps of a seed as they are. The number spells "susp".
    let mut random = fastrand::Rng::with_seed(setup.seed ^ 0x7375_7370);
    let mut steps = Vec::new();
    if random.u8(..3) > 0 {
        return steps;
    }
    let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX).max(1);
    for _ in 0..random.usize(1..=4) {
        let at = random.u64(..lasts);
        let process = random.usize(..setup.rates.len());
        let mut step = |at, what| {
            let at = Duration::from_millis(at);
            steps.push(PlanStep { at, what });
        };
        step(at, StepAction::Fault(refusal(process)));
        for name in 0..names.min(CHANGED) {
            let kind = random.usize(..2);
            let what = Change::Put;
            step(at, StepAction::Write(Write { kind, name, what }));
        }
        let beyond = Duration::from_millis(random.u64(..10_000));
        let what = ProcessFault::Pause(setup.times.duration + beyond);
        let suspended = at + random.u64(100..REFUSED);
        step(suspended, StepAction::Process { process, what });
    }
    steps
}

fn refusal(process: usize) -> Fault {
    Fault {
        kind: FaultKind::TooManyRequests,
        process: Some(process),
        resource: None,
        // Handlers patch, and elections update.
        verb: Some("patch"),
        times: u64::MAX,
        lasts: Duration::from_millis(REFUSED),
    }
}
