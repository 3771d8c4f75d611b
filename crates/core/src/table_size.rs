//! The sizes of long-lived data structures.

use std::fmt;

use crate::Gvk;

/// The size and bound of a long-lived data structure that is not an object cache.
///
/// In a process that runs for years, every such structure needs a bound. `SharedControllerFactory::table_sizes` and
/// `Operator::table_sizes` list the structures of a program; their documentation has the names and bounds. A bound is
/// either a constant or follows from current numbers: objects in a cache, handlers, keys in a queue, kinds in use. The
/// structures are read one after another, so bounds that depend on changing numbers may be inaccurate by what changed
/// meanwhile.
///
/// ```
/// use lariat_core::TableSize;
/// use lariat::Gvk;
///
/// let runs = TableSize::new("runs", 6, 5).of(&Gvk::new("", "v1", "Pod"));
/// assert!(runs.is_exceeded());
/// assert_eq!(runs.to_string(), "runs of v1 Pod: 6 of at most 5");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableSize {
    /// The name of the structure. There are few names, so it is suitable as a metric label.
    pub name: &'static str,
    /// The kind whose cache, queue or handlers it belongs to; `None` if kinds share it.
    pub kind: Option<Gvk>,
    /// The number of entries.
    pub entries: usize,
    /// The upper bound on the entries.
    pub bound: usize,
}

impl TableSize {
    /// Creates the measurement of a structure that all kinds share.
    #[must_use]
    pub fn new(name: &'static str, entries: usize, bound: usize) -> Self {
        Self {
            name,
            kind: None,
            entries,
            bound,
        }
    }

    /// Sets the kind that the structure belongs to.
    #[must_use]
    pub fn of(self, kind: &Gvk) -> Self {
        let kind = Some(kind.clone());
        Self { kind, ..self }
    }

    /// Returns whether there are more entries than the bound.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.entries > self.bound
    }
}

impl fmt::Display for TableSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            entries,
            bound,
            ..
        } = self;
        match &self.kind {
            Some(kind) => write!(f, "{name} of {kind}: {entries} of at most {bound}"),
            None => write!(f, "{name}: {entries} of at most {bound}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_bound_is_exceeded_and_all_of_it_is_not() {
        let pods = Gvk::new("", "v1", "Pod");
        assert!(!TableSize::new("runs", 5, 5).is_exceeded());
        let runs = TableSize::new("runs", 6, 5).of(&pods);
        assert!(runs.is_exceeded());
        assert_eq!(runs.to_string(), "runs of v1 Pod: 6 of at most 5");
        let kinds = TableSize::new("kinds", 1, 2);
        assert_eq!(kinds.to_string(), "kinds: 1 of at most 2");
    }
}
