//! Random choices of the trial's handlers.

use lariat_core::Gvk;
use parking_lot::Mutex;

use super::kinds::kinds;

pub(crate) fn gvk(kind: usize) -> Gvk {
    let kinds = kinds();
    kinds[kind % kinds.len()].clone()
}

/// Randomness that handlers share; the order of its use comes from the seed.
#[derive(Debug)]
pub(crate) struct Dice(Mutex<fastrand::Rng>);

impl Dice {
    pub(crate) fn new(random: fastrand::Rng) -> Self {
        Self(Mutex::new(random))
    }

    pub(crate) fn below(&self, number: u32) -> u32 {
        self.0.lock().u32(..number.max(1))
    }
}
