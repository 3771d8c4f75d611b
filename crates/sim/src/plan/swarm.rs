//! The classes of events that a seed leaves out, to reach states that these would disturb.

use std::fmt::Debug;

use lariat_core::fnv1a_32;

use super::{Change, FaultKind};

/// The kinds of actions of a seed; about half of the seeds have all.
#[derive(Debug)]
pub struct Swarm {
    faults: Option<u64>,
    commands: Option<u64>,
    changes: Option<u64>,
}

impl Swarm {
    pub(super) fn new(random: &mut fastrand::Rng) -> Self {
        let mut some = |share: u8| {
            // Drawn in any case, so that the share does not change the seed's other choices.
            let mask = random.u64(..);
            (random.u8(..100) < share).then_some(mask)
        };
        Self {
            faults: some(60),
            commands: some(50),
            changes: some(50),
        }
    }

    /// Returns the first candidate that the seed includes, or else the last one.
    pub(super) fn fault(&self, mut make: impl FnMut() -> FaultKind) -> FaultKind {
        try_some(&mut make, |kind| has(self.faults, rank(kind)))
    }

    /// Returns the first command that the seed includes, or else the last one.
    pub fn command<T: Debug>(&self, mut make: impl FnMut() -> T) -> T {
        try_some(&mut make, |command| has(self.commands, rank(command)))
    }

    pub(super) fn change(&self, mut make: impl FnMut() -> Change) -> Change {
        // Without creations nothing else happens either.
        try_some(&mut make, |change| {
            *change == Change::Put || has(self.changes, rank(change))
        })
    }
}

// A bound, as a mask may leave out everything that can be drawn.
const TRIES: usize = 20;

fn try_some<T>(make: &mut impl FnMut() -> T, is_there: impl Fn(&T) -> bool) -> T {
    let mut made = make();
    for _ in 0..TRIES {
        if is_there(&made) {
            break;
        }
        made = make();
    }
    made
}

fn has(mask: Option<u64>, rank: u32) -> bool {
    mask.is_none_or(|mask| mask >> (rank % 64) & 1 == 1)
}

/// A number for the variant of a value, which its fields do not change.
fn rank<T: Debug>(of: &T) -> u32 {
    let text = format!("{of:?}");
    let name = text.split(['(', ' ']).next().unwrap_or(&text);
    // The high bits of FNV-1a differ more than its low ones.
    fnv1a_32(name.as_bytes()) >> 16
}
