//! A plan: the planned writes of a factory.

use std::fmt;

use super::write::PlannedWrite;

/// The planned writes of a factory, by first occurrence.
///
/// Writes without effect are left out, so the plan is empty if the cluster is in the wanted state. Equal writes are
/// listed once, with the [number of occurrences](PlannedWrite::times). The `Display` has several lines.
///
/// ```
/// use lariat::operator::Plan;
///
/// let plan = Plan::default();
/// assert!(plan.is_empty());
/// assert_eq!(plan.to_string(), "nothing would be written\n");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub(super) writes: Vec<PlannedWrite>,
    pub(super) left_out: u64,
}

impl Plan {
    /// Returns an iterator over the planned writes.
    pub fn iter(&self) -> std::slice::Iter<'_, PlannedWrite> {
        self.writes.iter()
    }

    /// Returns the number of different writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns whether there are no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the number of writes that were left out.
    ///
    /// A plan has at most 10,000 different writes.
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
