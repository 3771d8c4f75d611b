//! Plans from seeds.

use std::time::Duration;

use super::sequence::{Pattern, Sequence, Subject};
use super::swarm::Swarm;
use super::{
    Change, Command, Fault, FaultKind, OwnWrite, PlanStep, ProcessFault, StepAction, Verb, Write,
};
use crate::chaos::Chaos;

const VERBS: [Option<&str>; 8] = [
    None,
    Some("list"),
    Some("watch"),
    Some("get"),
    Some("create"),
    Some("update"),
    Some("patch"),
    Some("delete"),
];

/// From this length on a run is mixed: in other styles most of it would be rest.
const LONG: Duration = Duration::from_secs(10 * 60);

/// The seconds of a long run for each sequence.
const SEQUENCE: u64 = 600;

/// The processes, kinds and names that a plan may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanBounds {
    pub(crate) processes: usize,
    pub(crate) kinds: usize,
    /// The kinds from this place on are custom: they can vanish.
    pub(crate) custom_from: usize,
    pub(crate) names: u16,
    pub(crate) commands: bool,
}

/// The style of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Everything happens at any time.
    Mixed,
    /// First anything, then sequences that nothing else disturbs.
    Apart,
    /// Resources are not served for a while, without faults that would prolong it.
    NotServed,
}

/// Makes the plan of a seed.
///
/// Each seed has tendencies of its own, such as many faults and few writes, so that runs differ more than the average
/// over all actions would let them.
pub(crate) fn generate(seed: u64, chaos: &Chaos, bounds: PlanBounds) -> Vec<PlanStep> {
    // The number spells "plan". Each use of the seed has such a number, so that they draw different values.
    let mut random = fastrand::Rng::with_seed(seed ^ 0x706c_616e);
    let style = match random.u8(..20) {
        // The number is drawn in any case, so the rest of the plan does not depend on this condition.
        _ if !(bounds.commands && chaos.faults) || chaos.duration >= LONG => Style::Mixed,
        0 => Style::NotServed,
        1..11 => Style::Apart,
        _ => Style::Mixed,
    };
    let generator = Generator {
        weights: Weights::new(&mut random, chaos, bounds),
        swarm: Swarm::new(&mut random),
        style,
        bounds,
        pace: chaos.pace,
        // Few names let many things happen to one object; many let objects be independent.
        names: random.u16(1..=bounds.names.max(1)),
    };
    let lasts = match style {
        Style::Mixed => chaos.duration,
        _ => Duration::from_millis(random.u64(1000..10_000)).min(chaos.duration),
    };
    let mut steps = generator.background(&mut random, lasts);
    if bounds.commands && chaos.faults {
        generator.sequences(&mut random, lasts, &mut steps);
        if style == Style::Mixed && chaos.kills {
            // A generator of its own leaves all other steps of a seed as they are.
            let mut random = fastrand::Rng::with_seed(seed ^ 0x656e_6473);
            generator.end(&mut random, lasts, &mut steps);
        }
    }
    // A stable sort: steps of the same time stay in the order in which they were made.
    steps.sort_by_key(|step| step.at);
    steps
}

struct Generator {
    weights: Weights,
    swarm: Swarm,
    style: Style,
    bounds: PlanBounds,
    /// The factor by which the pauses between events are longer.
    pace: u32,
    names: u16,
}

/// The weight of each class of actions.
struct Weights {
    write: u32,
    fault: u32,
    process_fault: u32,
    command: u32,
}

impl Weights {
    fn new(random: &mut fastrand::Rng, chaos: &Chaos, bounds: PlanBounds) -> Self {
        // Every fifth seed has none of the class.
        let mut tendency = |usual: u32| usual * [0, 1, 1, 2, 4][random.usize(..5)];
        Self {
            write: 40,
            fault: if chaos.faults { tendency(6) } else { 0 },
            process_fault: if chaos.kills { tendency(1) } else { 0 },
            command: if bounds.commands { tendency(10) } else { 0 },
        }
    }
}

impl Generator {
    /// Generates independent events.
    fn background(&self, random: &mut fastrand::Rng, lasts: Duration) -> Vec<PlanStep> {
        let base = Duration::from_millis([50, 200, 500, 1500][random.usize(..4)]);
        let pace = base * self.pace;
        let mut at = Duration::ZERO;
        let mut steps = Vec::new();
        loop {
            // Uniform from zero to twice the pace, so the pace is the mean.
            at += pace.mul_f64(2.0 * random.f64());
            // Now and then everything is left alone for a while, and then much happens at once.
            if random.u8(..40) == 0 {
                at += Duration::from_secs(random.u64(..20));
            }
            if at >= lasts {
                return steps;
            }
            let crowd = if random.u8(..20) == 0 {
                random.u8(2..8)
            } else {
                1
            };
            for _ in 0..crowd {
                let what = self.happening(random);
                steps.push(PlanStep { at, what });
            }
        }
    }

    /// Adds sequences: at any time of a mixed run, one after the other at the end of others.
    fn sequences(&self, random: &mut fastrand::Rng, lasts: Duration, steps: &mut Vec<PlanStep>) {
        let mut at = lasts;
        let count = match self.style {
            Style::Mixed if lasts >= LONG => lasts.as_secs() / SEQUENCE,
            Style::Mixed => random.u8(..4).into(),
            _ => random.u8(1..4).into(),
        };
        for _ in 0..count {
            if self.style == Style::Mixed {
                let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
                at = Duration::from_millis(random.u64(..=lasts));
            }
            let pattern = match self.style {
                Style::NotServed => Pattern::NotServed,
                _ => Pattern::any(random),
            };
            let place = Subject {
                process: random.usize(..self.bounds.processes.max(1)),
                kind: random.usize(..self.bounds.kinds.max(1)),
            };
            let (more, end) = Sequence::new(random, place, at).of(pattern);
            steps.extend(more);
            at = end + Duration::from_millis(random.u64(..5000));
        }
    }

    /// Adds the end of a starting process to every sixth mixed run, and that of a writing one to another sixth.
    fn end(&self, random: &mut fastrand::Rng, lasts: Duration, steps: &mut Vec<PlanStep>) {
        let pattern = match random.u8(..6) {
            0 => Pattern::EndWhileStarting,
            1 => Pattern::EndWhileWriting,
            _ => return,
        };
        let lasts = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        let at = Duration::from_millis(random.u64(..=lasts));
        let place = Subject {
            process: random.usize(..self.bounds.processes.max(1)),
            kind: random.usize(..self.bounds.kinds.max(1)),
        };
        let (more, _) = Sequence::new(random, place, at).of(pattern);
        steps.extend(more);
    }

    fn happening(&self, random: &mut fastrand::Rng) -> StepAction {
        let Weights {
            write,
            mut fault,
            mut process_fault,
            command,
        } = self.weights;
        if self.style == Style::NotServed {
            (fault, process_fault) = (0, 0);
        }
        let mut at = random.u32(..write + fault + process_fault + command);
        if at < write {
            return StepAction::Write(self.write(random));
        }
        at -= write;
        if at < fault {
            return StepAction::Fault(self.fault(random));
        }
        at -= fault;
        let process = random.usize(..self.bounds.processes.max(1));
        if at < process_fault {
            let what = self.process_fault(random);
            return StepAction::Process { process, what };
        }
        let what = self.command(random);
        StepAction::Command { process, what }
    }

    fn write(&self, random: &mut fastrand::Rng) -> Write {
        let kind = random.usize(..self.bounds.kinds.max(1));
        // In that style an outage must be the only reason why a kind is not served.
        let is_custom = kind >= self.bounds.custom_from && self.style != Style::NotServed;
        let what = self.swarm.change(|| match random.u8(..100) {
            0..50 => Change::Put,
            50..65 => Change::Relabel(random.u8(..3)),
            65..80 => Change::Delete,
            80..88 => Change::Recreate,
            88..93 => Change::Burst(random.u8(2..12)),
            93..94 => Change::DeleteAll,
            94 if is_custom => Change::Undefine,
            95 if is_custom => Change::Unserve(random.u8(1..90)),
            96..100 if is_custom => Change::Define(random.u8(..4)),
            _ => Change::Put,
        });
        Write {
            kind,
            name: random.u16(..self.names),
            what,
        }
    }

    fn fault(&self, random: &mut fastrand::Rng) -> Fault {
        let seconds = |random: &mut fastrand::Rng, most: u64| {
            Duration::from_millis(random.u64(1..=most * 1000))
        };
        let kind = self.swarm.fault(|| match random.u8(..35) {
            0..3 => FaultKind::CutWatches,
            3 => FaultKind::EndWatches,
            4 => FaultKind::CutWatchAfter(random.usize(..6)),
            5 => FaultKind::HangWatch(random.usize(..6)),
            6 => FaultKind::CutBody(random.usize(..2000)),
            7 => FaultKind::Expire,
            8 => FaultKind::Gone,
            9..11 => FaultKind::Compact,
            11 => FaultKind::TooManyRequests,
            12 => FaultKind::ServerError([500, 502, 503, 504][random.usize(..4)]),
            13..15 => FaultKind::Delay(seconds(random, 40)),
            15..18 => FaultKind::DelayReply(seconds(random, 40)),
            18 => FaultKind::Bandwidth(random.u64(50..5000)),
            19 => FaultKind::NoAnswer,
            20 => FaultKind::NoReply,
            21 => FaultKind::Disconnect,
            22 => FaultKind::LoseReply,
            23 => FaultKind::StaleRead,
            24 => FaultKind::Conflict,
            25 => FaultKind::SkipVersions(random.u64(1..5000)),
            26 => FaultKind::SkipStates,
            27 => FaultKind::RefuseWatchList,
            28 => FaultKind::Away,
            29 => FaultKind::Blackhole,
            30 => FaultKind::Backup,
            31 => FaultKind::Restore,
            32 => FaultKind::Streams(random.usize(2..12)),
            33 => FaultKind::MaxInflight(random.usize(1..4)),
            _ => FaultKind::Latency(seconds(random, 2)),
        });
        Fault {
            kind,
            process: random
                .bool()
                .then(|| random.usize(..self.bounds.processes.max(1))),
            resource: random
                .bool()
                .then(|| random.usize(..self.bounds.kinds.max(1))),
            verb: VERBS[random.usize(..VERBS.len())],
            // The last one is as good as no limit.
            times: [1, 1, 2, 5, 1000][random.usize(..5)],
            lasts: {
                let most = [2, 10, 60][random.usize(..3)];
                seconds(random, most)
            },
        }
    }

    #[expect(clippy::unused_self, reason = "all actions are made the same way")]
    fn process_fault(&self, random: &mut fastrand::Rng) -> ProcessFault {
        let most = [100, 5_000, 120_000][random.usize(..3)];
        let length = Duration::from_millis(random.u64(1..=most));
        match random.u8(..4) {
            0 => ProcessFault::Kill(length),
            1 => ProcessFault::Restart(length),
            2 => ProcessFault::Pause(length),
            _ => ProcessFault::Clock(random.i64(-100_000..100_000)),
        }
    }

    fn command(&self, random: &mut fastrand::Rng) -> Command {
        let verb = self.swarm.verb(|| match random.u8(..65) {
            0..7 => Verb::Register,
            7..10 => Verb::Leave,
            10..14 => Verb::Enqueue,
            14..18 => Verb::EnqueueLater,
            18..22 => Verb::Select,
            22..25 => Verb::Need,
            25..30 => Verb::Subscribe,
            30 => Verb::Unsubscribe,
            31 => Verb::Dismiss,
            32..42 => Verb::Write(own(random)),
            42..44 => Verb::Read,
            44..47 if self.style != Style::NotServed => Verb::Stop,
            47..51 if self.style != Style::NotServed => Verb::Start,
            51 if self.style != Style::NotServed => Verb::AbandonStop,
            52..54 => Verb::Retire,
            54..56 => Verb::Pause,
            56 => Verb::Relist,
            57..59 => Verb::Load,
            59 => Verb::LoadAll,
            _ => Verb::Misbehave,
        });
        Command {
            verb,
            kind: random.usize(..self.bounds.kinds.max(1)),
            number: random.u32(..),
        }
    }
}

fn own(random: &mut fastrand::Rng) -> OwnWrite {
    match random.u8(..16) {
        0..4 => OwnWrite::Annotate,
        4..7 => OwnWrite::Relabel(random.u8(..3)),
        7 => OwnWrite::Apply,
        8..10 => OwnWrite::Update,
        10..13 => OwnWrite::Create(random.bool()),
        13 => OwnWrite::Status,
        14 => OwnWrite::DeleteLabelled,
        _ => OwnWrite::Delete,
    }
}
