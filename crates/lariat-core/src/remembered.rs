//! How much a long-lived structure remembers.

use std::fmt;

use crate::Gvk;

/// The size of a structure that remembers something beyond the objects themselves, and the bound it keeps to.
///
/// In a process that runs for years every such structure has a bound. A factory and an operator list theirs
/// (`SharedControllerFactory::remembered`, `Operator::remembered`), where the tables of names and bounds are. Bounds
/// are either constants, or follow from numbers of the moment: objects in a cache, handlers, keys in a queue, kinds in
/// use. What is listed is read one structure after another, not at one moment, so bounds of numbers that change
/// meanwhile may be off by what has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remembered {
    /// What is remembered: a name from a short list, fit for the label of a metric.
    pub what: &'static str,
    /// The kind whose cache, queue or handlers it belongs to; `None` for what all kinds share.
    pub kind: Option<Gvk>,
    /// How many entries there are.
    pub entries: usize,
    /// How many entries there are at most.
    pub bound: usize,
}

impl Remembered {
    /// Makes the report of a structure that belongs to no kind.
    #[must_use]
    pub fn new(what: &'static str, entries: usize, bound: usize) -> Self {
        Self {
            what,
            kind: None,
            entries,
            bound,
        }
    }

    /// Says to which kind it belongs.
    #[must_use]
    pub fn of(self, kind: &Gvk) -> Self {
        let kind = Some(kind.clone());
        Self { kind, ..self }
    }

    /// Returns whether there are more entries than there should be at most.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        self.entries > self.bound
    }
}

impl fmt::Display for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            entries,
            bound,
            ..
        } = self;
        match &self.kind {
            Some(kind) => write!(f, "{what} of {kind}: {entries} of at most {bound}"),
            None => write!(f, "{what}: {entries} of at most {bound}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_bound_is_exceeded_and_all_of_it_is_not() {
        let pods = Gvk::new("", "v1", "Pod");
        assert!(!Remembered::new("runs", 5, 5).is_exceeded());
        let runs = Remembered::new("runs", 6, 5).of(&pods);
        assert!(runs.is_exceeded());
        assert_eq!(runs.to_string(), "runs of v1 Pod: 6 of at most 5");
        let kinds = Remembered::new("kinds", 1, 2);
        assert_eq!(kinds.to_string(), "kinds: 1 of at most 2");
    }
}
