//! What a check is.

use super::level::Level;
use super::pod::Pod;
use super::violation::Violation;

/// Finds what is wrong with a Pod.
pub(super) type Find = fn(Pod<'_>) -> Option<Violation>;

/// Something that is checked.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) id: &'static str,
    /// The lowest level at which it counts.
    pub(super) level: Level,
    /// The release since which a function counts, in rising order.
    pub(super) versions: &'static [(i64, Find)],
    /// The check of the level below that is left out where this one counts.
    pub(super) instead_of: Option<&'static str>,
}

impl Check {
    /// Returns the function that counts in a release.
    pub(super) fn at(&self, minor: i64) -> Option<Find> {
        let mut newest_first = self.versions.iter().rev();
        let found = newest_first.find(|(since, _)| *since <= minor);
        found.map(|(_, find)| *find)
    }
}
