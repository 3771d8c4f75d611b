//! Reads of a range of keys, in pages.

use std::ops::Bound;
use std::sync::Arc;

use super::object::Stored;

/// The requested revision is no longer covered by the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expired;

/// The objects that a read covers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Range<'a> {
    pub(crate) namespace: Option<&'a str>,
    /// The first key, from a continue token.
    pub(crate) start: Option<&'a str>,
    /// The revision of the state; `None` for the present.
    pub(crate) at: Option<u64>,
    /// Reads the oldest state there is if that of the revision is no longer known.
    pub(crate) or_oldest: bool,
    pub(crate) limit: Option<usize>,
    /// Does not count what lies behind the limit, which costs as much as there is.
    pub(crate) uncounted: bool,
}

/// Objects in key order as they were at one revision.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Arc<Stored>>,
    pub(crate) revision: u64,
    /// The number of objects of the range behind the limit.
    pub(crate) remaining: usize,
}

/// Takes the objects up to the limit, and counts the others.
pub(super) fn page_of<'a>(
    mut objects: impl Iterator<Item = &'a Arc<Stored>>,
    range: &Range<'_>,
    revision: u64,
) -> Page {
    let limit = range.limit.unwrap_or(usize::MAX);
    let page = objects.by_ref().take(limit).map(Arc::clone).collect();
    Page {
        objects: page,
        revision,
        remaining: if range.uncounted { 0 } else { objects.count() },
    }
}

/// The texts between which the keys of a range lie; the end is exclusive.
#[derive(Debug)]
pub(super) struct KeyBounds {
    start: String,
    end: Option<String>,
}

impl KeyBounds {
    pub(super) fn of(range: &Range<'_>) -> Self {
        let (mut start, end) = match range.namespace {
            // "0" is the character behind "/".
            Some(namespace) => (format!("{namespace}/"), Some(format!("{namespace}0"))),
            None => (String::new(), None),
        };
        // A token of another namespace must not widen the range beyond this one.
        if let Some(after) = range.start.filter(|after| **after > *start) {
            start = after.to_owned();
        }
        Self { start, end }
    }

    pub(super) fn as_bounds(&self) -> (Bound<&str>, Bound<&str>) {
        let start = self.start.as_str();
        // A start behind the end, which only a forged token has, must not panic.
        let end = self.end.as_deref().map(|end| end.max(start));
        (
            Bound::Included(start),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        )
    }
}
