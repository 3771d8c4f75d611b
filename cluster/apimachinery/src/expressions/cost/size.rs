//! Ranges of sizes.

/// How many characters, elements or entries a value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self {
        least: 0,
        most: u64::MAX,
    };

    /// What every size is in a union with.
    pub(super) const NONE: Self = Self {
        least: u64::MAX,
        most: 0,
    };

    pub(super) fn fixed(size: u64) -> Self {
        Self::up_to(size, size)
    }

    pub(super) fn up_to(least: u64, most: u64) -> Self {
        Self { least, most }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_add(other.least),
            most: self.most.saturating_add(other.most),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            least: self.least.saturating_mul(other.least),
            most: self.most.saturating_mul(other.most),
        }
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    /// Returns the highest cost of processing a value of this size once.
    pub(super) fn cost(self, of_each: f64) -> u64 {
        scaled(self.most, of_each)
    }
}

/// Multiplies a cost by a factor, rounded up.
// `multiplyByCostFactor`.
pub(super) fn scaled(cost: u64, factor: f64) -> u64 {
    // A number that is too large becomes the largest one.
    (cost as f64 * factor).ceil() as u64
}
