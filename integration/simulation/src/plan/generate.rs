//! Plans of the trial: the background of any simulation, with commands and sequences.

use std::time::Duration;

use lariat_sim::Chaos;
use lariat_sim::internals::{Background, ChaosExt, Opaque, PlanBounds, PlanStep, Swarm};

use super::sequence::{Pattern, Sequence, Subject};
use super::{Command, OwnWrite, Verb};

/// From this length on a run is mixed: in other styles most of it would be rest.
const LONG: Duration = Duration::from_secs(10 * 60);

/// The seconds of a long run for each sequence.
const SEQUENCE: u64 = 600;

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

/// Makes the plan of a seed; commands name their kinds.
pub(crate) fn generate(
    seed: u64,
    chaos: &Chaos,
    bounds: PlanBounds,
    kinds: &[&str],
) -> Vec<PlanStep> {
    // The number spells "plan". Each use of the seed has such a number, so that they draw different values.
    let mut random = fastrand::Rng::with_seed(seed ^ 0x706c_616e);
    let style = match random.u8(..20) {
        // The number is drawn in any case, so the rest of the plan does not depend on this condition.
        _ if chaos.lasts() >= LONG => Style::Mixed,
        0 => Style::NotServed,
        1..11 => Style::Apart,
        _ => Style::Mixed,
    };
    let generator = Generator {
        style,
        bounds,
        kinds,
    };
    let command = |random: &mut fastrand::Rng, swarm: &Swarm| generator.command(random, swarm);
    let background = Background::new(&mut random, chaos, bounds, Some(&command));
    let background = background.calm(style == Style::NotServed);
    let lasts = match style {
        Style::Mixed => chaos.lasts(),
        _ => Duration::from_millis(random.u64(1000..10_000)).min(chaos.lasts()),
    };
    let mut steps = background.steps(&mut random, lasts);
    generator.sequences(&mut random, lasts, &mut steps);
    if style == Style::Mixed {
        // A generator of its own leaves all other steps of a seed as they are.
        let mut random = fastrand::Rng::with_seed(seed ^ 0x656e_6473);
        generator.end(&mut random, lasts, &mut steps);
    }
    // A stable sort: steps of the same time stay in the order in which they were made.
    steps.sort_by_key(|step| step.at);
    steps
}

struct Generator<'a> {
    style: Style,
    bounds: PlanBounds,
    kinds: &'a [&'a str],
}

impl Generator<'_> {
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
            let (more, end) = Sequence::new(random, place, at, self.kinds).of(pattern);
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
        let (more, _) = Sequence::new(random, place, at, self.kinds).of(pattern);
        steps.extend(more);
    }

    fn command(&self, random: &mut fastrand::Rng, swarm: &Swarm) -> Opaque {
        let verb = swarm.command(|| match random.u8(..65) {
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
        let command = Command {
            verb,
            kind: random.usize(..self.bounds.kinds.max(1)),
            number: random.u32(..),
        };
        command.carried(self.kinds)
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
