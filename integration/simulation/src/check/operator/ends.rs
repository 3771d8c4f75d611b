//! Ends of shops, as `on_deleted` reports them.

use std::collections::{BTreeMap, BTreeSet};

use lariat_cluster::Commit;
use lariat_core::ObjectKey;
use lariat_sim::internals::{Event, IncarnationId, Moment};

use super::SHOPS;
use crate::check::{Check, Findings};
use crate::operator_action::OperatorAction;
use crate::oracle::Oracle;
use crate::shop;

/// The end of a shop is reported once, and only of one that is gone.
///
/// `Reconciler::on_deleted`: "Calls a function once an object is gone … It is called again only after an error that is
/// to be tried again, or a panic". A shop that a restored backup brings back ends once more; the report of the end
/// before may come after the restore, from a process that has yet to notice it.
#[derive(Default)]
pub(super) struct Ends {
    /// The number of times that each incarnation has reported the end of a shop.
    reported: BTreeMap<(IncarnationId, String), usize>,
    /// The event with which each incarnation began; see [`Moment::number`].
    begun: BTreeMap<IncarnationId, u64>,
    /// The events that created each shop or brought it back, by uid.
    ///
    /// They are numbered as in [`Moment::number`].
    came: BTreeMap<String, Vec<u64>>,
    there: BTreeSet<String>,
    /// The shops that were there when a backup was restored, and may be still.
    before: BTreeSet<String>,
}

impl Check for Ends {
    fn name(&self) -> &'static str {
        "ends are reported once"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        match event {
            Event::Committed(commit) => self.committed(commit, moment.number),
            Event::IncarnationBegan(incarnation) => {
                self.begun.insert(incarnation.clone(), moment.number);
            }
            Event::IncarnationEnded(incarnation) => {
                self.begun.remove(incarnation);
                self.reported.retain(|of, _| of.0 != *incarnation);
            }
            Event::Did {
                incarnation,
                action,
            } => {
                if let Some(OperatorAction::Ended { key, uid }) = action.get() {
                    return self.ended(oracle, incarnation, key, uid);
                }
            }
            _ => {}
        }
        Vec::new()
    }
}

impl Ends {
    fn committed(&mut self, commit: &Commit, number: u64) {
        match commit {
            Commit::Reset { .. } => self.before = std::mem::take(&mut self.there),
            Commit::Stored(shop) if shop.resource() == SHOPS => {
                let uid = shop.uid().to_owned();
                let was_there = self.before.remove(&uid);
                if self.there.insert(uid.clone()) && !was_there {
                    self.came.entry(uid).or_default().push(number);
                }
            }
            Commit::Removed { last } if last.resource() == SHOPS => {
                // Its entry in `came` stays: processes report the end only after this.
                self.there.remove(last.uid());
            }
            _ => {}
        }
    }

    fn ended(
        &mut self,
        oracle: &Oracle,
        incarnation: &IncarnationId,
        key: &ObjectKey,
        uid: &String,
    ) -> Findings {
        let mut found = Vec::new();
        let allowed = self.allowed(incarnation, uid);
        let of = (incarnation.clone(), uid.clone());
        let reported = self.reported.entry(of).or_default();
        *reported += 1;
        if *reported > allowed {
            found.push(format!(
                "the end of {key} ({uid}) is reported {reported} times, {allowed} are allowed"
            ));
        }
        let now = oracle.now(&shop::gvk(), key);
        let is_there = now.is_some_and(|now| now.uid() == uid);
        // After a restore a process may report an end that the restore has undone.
        if is_there && oracle.epoch() <= 1 {
            found.push(format!(
                "the end of {key} ({uid}) is reported, but it is there"
            ));
        }
        found
    }

    /// Returns how often a shop can have ended for an incarnation.
    ///
    /// A shop that is there when the incarnation begins, or has been, counts once.
    fn allowed(&self, incarnation: &IncarnationId, uid: &str) -> usize {
        let begun = self.begun.get(incarnation).copied();
        let came = self.came.get(uid).map_or(&[][..], Vec::as_slice);
        // Of all times that the shop came before this incarnation, the incarnation can have seen the last one only.
        let before = came.partition_point(|number| *number < begun.unwrap_or(0));
        (came.len() - before + before.min(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::OperatorHarness;
    use super::*;

    fn ended(harness: &mut OperatorHarness, uid: &str) {
        let (key, uid) = (OperatorHarness::key("o1"), uid.to_owned());
        harness.did(OperatorAction::Ended { key, uid });
    }

    #[tokio::test]
    async fn an_end_that_is_reported_once_is_fine_and_twice_is_not() {
        let mut harness = OperatorHarness::new(Ends::default()).await;
        ended(&mut harness, "a");
        assert!(harness.all().is_empty(), "{:?}", harness.all());
        ended(&mut harness, "a");
        assert!(
            harness.found("reported 2 times, 1 are allowed"),
            "{:?}",
            harness.all()
        );
    }

    #[tokio::test]
    async fn the_end_of_a_shop_that_is_there_is_reported() {
        let mut harness = OperatorHarness::new(Ends::default()).await;
        let uid = harness.create_shop("o1", 0).await;
        ended(&mut harness, &uid);
        assert!(harness.found("but it is there"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_shop_that_a_backup_brings_back_may_end_once_more() {
        let mut harness = OperatorHarness::new(Ends::default()).await;
        harness.create(&shop::gvk(), "o1", &shop::spec(0)).await;
        let uid = harness.uid(&shop::gvk(), "o1");
        let backup = harness.backup();
        // It is there before and after: that is one end.
        harness.restore(&backup).await;
        harness.delete(&shop::gvk(), "o1").await;
        harness.restore(&backup).await;
        // Of before, by a process that has yet to notice the restore.
        ended(&mut harness, &uid);
        harness.delete(&shop::gvk(), "o1").await;
        ended(&mut harness, &uid);
        assert!(harness.all().is_empty(), "{:?}", harness.all());
        ended(&mut harness, &uid);
        assert!(
            harness.found("reported 3 times, 2 are allowed"),
            "{:?}",
            harness.all()
        );
    }
}
