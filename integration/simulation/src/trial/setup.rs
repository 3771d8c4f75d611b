//! The setup of a trial's program.

use lariat_cache::Storage;

pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// The setup that all incarnations of the program have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(super) seed: u64,
    pub(super) workers: usize,
    pub(super) handlers: usize,
    pub(super) budget: Option<usize>,
    pub(super) grace: u64,
    pub(super) resync: bool,
    pub(super) storage: Storage,
    /// Whether the initial objects are read by lists.
    pub(super) lists: bool,
    /// Whether there are many objects at the start, and a slow handler of each.
    pub(super) is_crowded: bool,
}

impl Setup {
    pub(super) fn new(random: &mut fastrand::Rng) -> Self {
        Self {
            seed: random.u64(..),
            workers: random.usize(1..5),
            handlers: random.usize(1..5),
            budget: (random.u8(..4) == 0).then(|| random.usize(2_000..40_000)),
            grace: [1, 30, 60][random.usize(..3)],
            resync: random.u8(..4) == 0,
            storage: Storage::Auto,
            lists: false,
            is_crowded: false,
        }
    }
}
