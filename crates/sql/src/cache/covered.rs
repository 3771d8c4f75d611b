//! Coverage: the resource version up to which all changes are written.

use std::collections::VecDeque;

/// Versions of the informer, each with the number of steps that had begun by then.
///
/// All changes up to a version are in those steps, so the version is reached once they are written, whatever steps
/// follow.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// Steps begun and version, both ascending; at most one entry per pending batch.
    marks: VecDeque<(u64, u64)>,
}

impl Covered {
    /// Records a version whose changes are all in the first `begun` steps.
    pub(super) fn mark(&mut self, begun: u64, version: u64) {
        match self.marks.back_mut() {
            // A later version without a new step.
            Some(last) if last.0 == begun => last.1 = version,
            _ => self.marks.push_back((begun, version)),
        }
    }

    /// Returns the version that is reached once all steps before `first` are written.
    ///
    /// `None` if it is not new.
    pub(super) fn up_to(&mut self, first: u64) -> Option<u64> {
        let mut version = None;
        // Marks are ascending, so the last one that is reached is the result.
        while let Some((begun, marked)) = self.marks.front()
            && *begun <= first
        {
            version = Some(*marked);
            self.marks.pop_front();
        }
        version
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use lariat_cache::{CachedObject, Change, Subscriber};
    use lariat_core::{Gvk, RawObject};
    use proptest::prelude::*;

    use super::*;
    use crate::cache::unread::Unread;

    fn state(name: u8, version: u64) -> Arc<CachedObject> {
        let json = format!(
            r#"{{"metadata":{{"name":"n{name}","uid":"n{name}","resourceVersion":"{version}"}}}}"#
        );
        let raw = RawObject::parse(json.as_bytes(), &Gvk::new("", "v1", "Thing"));
        Arc::new(CachedObject::new(raw.unwrap()))
    }

    proptest! {
        /// `Some(name)` is a change of an object, none takes a batch.
        #[test]
        fn a_version_is_reached_when_all_up_to_it_is_written_and_not_later_than_the_backlog_then(
            events in prop::collection::vec(prop::option::weighted(0.8, 0..12_u8), 1..120),
            most in 1..4_usize,
        ) {
            let (unread, mut covered) = (Unread::default(), Covered::default());
            // The versions that are in no written step.
            let mut missing: BTreeSet<(u8, u64)> = BTreeSet::new();
            let (mut version, mut reached) = (0, 0);
            // What was there at a version: so many batches later it has to be reached.
            let mut owed: Vec<(u64, usize)> = Vec::new();
            for event in events {
                let Some(name) = event else {
                    covered.mark(unread.begun(), version);
                    let (backlog, _) = unread.unwritten();
                    owed.push((version, backlog.div_ceil(most).max(1)));
                    for step in unread.take(most) {
                        missing.retain(|(name, _)| step.key.name() != format!("n{name}"));
                    }
                    reached = covered.up_to(unread.first()).unwrap_or(reached);
                    unread.written();
                    let is_behind = missing.iter().any(|(_, missing)| *missing <= reached);
                    prop_assert!(!is_behind, "{reached} {missing:?}");
                    owed.iter_mut().for_each(|(_, batches)| *batches -= 1);
                    let late = owed.iter().find(|(owed, batches)| *batches == 0 && *owed > reached);
                    prop_assert!(late.is_none(), "{reached} {late:?}");
                    owed.retain(|(_, batches)| *batches > 0);
                    continue;
                };
                version += 1;
                missing.insert((name, version));
                let (old, new) = (state(name, 0), state(name, version));
                unread.changed(&[Change::Updated { old, new }]);
            }
        }
    }
}
