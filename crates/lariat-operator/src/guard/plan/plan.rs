//! Plans: what reconcilers would write.

use std::fmt;

use super::write::PlannedWrite;

/// What the reconcilers of an operator would have written, in the order in which each came up first.
///
/// A write that would change nothing is not in it, so the plan of a cluster that is as wanted is empty. Writes that are
/// the same in all that a plan says of them are in it once, with how [many times](PlannedWrite::times) they came up. Prints as a text of several lines.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub(super) writes: Vec<PlannedWrite>,
    pub(super) left_out: u64,
}

impl Plan {
    /// Iterates over the writes.
    pub fn iter(&self) -> std::slice::Iter<'_, PlannedWrite> {
        self.writes.iter()
    }

    /// Returns how many different writes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns whether nothing would have been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns how many writes are not in the plan because it has 10,000 others.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

impl<'a> IntoIterator for &'a Plan {
    type Item = &'a PlannedWrite;
    type IntoIter = std::slice::Iter<'a, PlannedWrite>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing would be written\n");
        }
        for write in self {
            writeln!(f, "{write}")?;
        }
        match self.left_out {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}
