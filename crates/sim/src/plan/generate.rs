//! Plans from seeds.

use std::fmt;
use std::time::Duration;

use super::swarm::Swarm;
use super::{Change, Fault, FaultKind, PlanStep, ProcessFault, StepAction, Write};
use crate::chaos::Chaos;
use crate::opaque::Opaque;

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

/// The processes, kinds and names that a plan may use.
#[derive(Debug, Clone, Copy)]
pub struct PlanBounds {
    /// The number of processes.
    pub processes: usize,
    /// The number of kinds.
    pub kinds: usize,
    /// The kinds from this place on are custom: they can vanish.
    pub custom_from: usize,
    /// The number of names per kind.
    pub names: u16,
}

/// Draws what a process is asked to do.
type DrawCommand<'a> = &'a dyn Fn(&mut fastrand::Rng, &Swarm) -> Opaque;

/// Makes the plan of a seed.
///
/// Each seed has tendencies of its own, such as many faults and few writes, so that runs differ more than the average
/// over all actions would let them.
pub(crate) fn generate(seed: u64, chaos: &Chaos, bounds: PlanBounds) -> Vec<PlanStep> {
    // The number spells "plan". Each use of the seed has such a number, so that they draw different values.
    let mut random = fastrand::Rng::with_seed(seed ^ 0x706c_616e);
    // Plans with commands draw their style here; without the draw each seed would have another plan.
    random.u8(..20);
    let background = Background::new(&mut random, chaos, bounds, None);
    // They are made in the order of time.
    background.steps(&mut random, chaos.duration)
}

/// Events that do not depend on each other: writes, faults and commands.
pub struct Background<'a> {
    weights: Weights,
    swarm: Swarm,
    bounds: PlanBounds,
    /// The factor by which the pauses between events are longer.
    pace: u32,
    names: u16,
    commands: Option<DrawCommand<'a>>,
    /// Whether there are no faults, and each kind stays defined.
    is_calm: bool,
}

/// The weight of each class of actions.
struct Weights {
    write: u32,
    fault: u32,
    process_fault: u32,
    command: u32,
}

impl Weights {
    fn new(random: &mut fastrand::Rng, chaos: &Chaos, commands: bool) -> Self {
        // Every fifth seed has none of the class.
        let mut tendency = |usual: u32| usual * [0, 1, 1, 2, 4][random.usize(..5)];
        Self {
            write: 40,
            fault: if chaos.faults { tendency(6) } else { 0 },
            process_fault: if chaos.kills { tendency(1) } else { 0 },
            command: if commands { tendency(10) } else { 0 },
        }
    }
}

impl<'a> Background<'a> {
    /// Draws the tendencies of a seed.
    #[must_use]
    pub fn new(
        random: &mut fastrand::Rng,
        chaos: &Chaos,
        bounds: PlanBounds,
        commands: Option<DrawCommand<'a>>,
    ) -> Self {
        Self {
            weights: Weights::new(random, chaos, commands.is_some()),
            swarm: Swarm::new(random),
            bounds,
            pace: chaos.pace,
            // Few names let many things happen to one object; many let objects be independent.
            names: random.u16(1..=bounds.names.max(1)),
            commands,
            is_calm: false,
        }
    }

    /// Leaves out faults, and what lets a kind vanish.
    #[must_use]
    pub fn calm(self, is_calm: bool) -> Self {
        Self { is_calm, ..self }
    }

    /// Generates independent events.
    #[must_use]
    pub fn steps(&self, random: &mut fastrand::Rng, lasts: Duration) -> Vec<PlanStep> {
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

    fn happening(&self, random: &mut fastrand::Rng) -> StepAction {
        let Weights {
            write,
            mut fault,
            mut process_fault,
            command,
        } = self.weights;
        if self.is_calm {
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
        match self.commands {
            Some(command) if at >= process_fault => {
                let what = command(random, &self.swarm);
                StepAction::Command { process, what }
            }
            _ => {
                let what = self.process_fault(random);
                StepAction::Process { process, what }
            }
        }
    }

    fn write(&self, random: &mut fastrand::Rng) -> Write {
        let kind = random.usize(..self.bounds.kinds.max(1));
        // In a calm an outage must be the only reason why a kind is not served.
        let is_custom = kind >= self.bounds.custom_from && !self.is_calm;
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
}

impl fmt::Debug for Background<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").finish_non_exhaustive()
    }
}
