//! Finalizers: no shop goes without its cleanup, and none that is alive is cleaned up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_cluster::{Commit, StoredObject};
use lariat_core::ObjectKey;
use lariat_sim::internals::{Event, Moment};

use super::SHOPS;
use crate::check::{Check, Findings};
use crate::operator_action::OperatorAction;
use crate::oracle::{Oracle, SWEEP};
use crate::shop;

/// For how long a removal of the finalizer by force may be on its way.
const FORCED: Duration = Duration::from_secs(120);

/// A shop with the finalizer is cleaned up once it is deleted, before it goes.
///
/// The cleanup must have begun after the deletion, and a shop that is alive is not cleaned up.
///
/// `Reconciler::finalizer` says so: "An object that is being deleted and has the finalizer is given to `cleanup`",
/// and the finalizer is removed when that is done; "cleanup happens at least once". What a foreign client took the
/// finalizer off is exempt. A restored backup may bring a deleted shop back: it has to be cleaned up again.
/// A shop is remembered for as long as a state of it may still be shown.
#[derive(Default)]
pub(super) struct Cleanups {
    shops: BTreeMap<ShopOf, Shop>,
    /// The event with which each process began to clean up a shop.
    began: BTreeMap<(Arc<str>, ShopOf), u64>,
    forced: BTreeMap<ObjectKey, Duration>,
    /// The time at which shops were forgotten last.
    swept: Duration,
}

/// A shop by its key and its uid.
type ShopOf = (ObjectKey, String);

#[derive(Default)]
struct Shop {
    has_finalizer: bool,
    /// Whether it was ever being deleted.
    was_deleting: bool,
    /// The last event at which it lived.
    lived: u64,
    /// The event with which the last cleanup that is done began, and the epoch in which it ended.
    cleaned: Option<(u64, u32)>,
}

impl Check for Cleanups {
    fn name(&self) -> &'static str {
        "cleanup before the end"
    }

    fn saw(&mut self, oracle: &Oracle, moment: &Moment, event: &Event) -> Findings {
        match event {
            Event::Committed(Commit::Stored(object)) if object.resource() == SHOPS => {
                let has = shop::has_finalizer(&shop::json_of(object));
                self.is_now(oracle, moment, object, has)
            }
            Event::Committed(Commit::Removed { last }) if last.resource() == SHOPS => {
                self.forget(oracle, moment.at);
                // The API server removes an object in the write that takes its last finalizer, so no state without it
                // is stored.
                self.is_now(oracle, moment, last, false)
            }
            Event::Committed(Commit::Reset { .. }) => {
                for shop in self.shops.values_mut() {
                    shop.has_finalizer = false;
                }
                Vec::new()
            }
            Event::Did {
                incarnation,
                action,
            } => match action.get() {
                Some(action) => self.did(&incarnation.process, action, oracle, moment),
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

impl Cleanups {
    fn forget(&mut self, oracle: &Oracle, now: Duration) {
        if now < self.swept + SWEEP {
            return;
        }
        self.swept = now;
        let is_left = |(key, uid): &ShopOf| oracle.remembers(&shop::gvk(), key, uid);
        self.shops.retain(|shop, _| is_left(shop));
        self.began.retain(|(_, shop), _| is_left(shop));
        self.forced.retain(|_, at| now <= *at + FORCED);
    }

    fn is_now(
        &mut self,
        oracle: &Oracle,
        moment: &Moment,
        object: &StoredObject,
        has_finalizer: bool,
    ) -> Findings {
        let (uid, key) = (object.uid(), object.key());
        let shop = self.shops.entry((key.clone(), uid.to_owned())).or_default();
        let had = std::mem::replace(&mut shop.has_finalizer, has_finalizer);
        let mut found = Vec::new();
        if had && !has_finalizer {
            let forced = self.forced.get(key);
            let is_forced = forced.is_some_and(|at| moment.at <= *at + FORCED);
            let wrong = shop.why_not_cleaned(oracle, uid).filter(|_| !is_forced);
            found.extend(
                wrong.map(|reason| format!("{key} ({uid}) lost the finalizer, but {reason}")),
            );
        }
        if object.is_deleting() {
            shop.was_deleting = true;
        } else {
            shop.lived = moment.number;
        }
        found
    }

    fn did(
        &mut self,
        process: &Arc<str>,
        action: &OperatorAction,
        oracle: &Oracle,
        moment: &Moment,
    ) -> Findings {
        match action {
            OperatorAction::CleansUp { key, uid } => {
                let of = (key.clone(), uid.clone());
                let shop = self.shops.get(&of);
                let was_deleting = shop.is_some_and(|shop| shop.was_deleting);
                let began = (Arc::clone(process), of);
                self.began.insert(began, moment.number);
                if was_deleting {
                    return Vec::new();
                }
                vec![format!(
                    "{key} ({uid}) is cleaned up, but was never deleted"
                )]
            }
            OperatorAction::CleanedUp { key, uid } => {
                let of = (key.clone(), uid.clone());
                let began = self
                    .began
                    .get(&(Arc::clone(process), of.clone()))
                    .copied()
                    .unwrap_or_default();
                let shop = self.shops.entry(of).or_default();
                // Two replicas may clean up at once; the cleanup that began last counts, whichever ends last.
                if shop.cleaned.is_none_or(|(before, _)| before < began) {
                    shop.cleaned = Some((began, oracle.epoch()));
                }
                Vec::new()
            }
            OperatorAction::RemovesFinalizer { key } => {
                self.forced.insert(key.clone(), moment.at);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Shop {
    /// Returns the reason why a shop may not lose the finalizer now.
    fn why_not_cleaned(&self, oracle: &Oracle, uid: &str) -> Option<&'static str> {
        let Some((began, epoch)) = self.cleaned else {
            return Some("was never cleaned up");
        };
        if began < self.lived {
            return Some("has lived since it was cleaned up");
        }
        // A backup that was restored since may not have the ledger, which is no fault of the cleanup.
        let ledger = oracle.now(&shop::config_maps(), &shop::ledger(uid));
        (ledger.is_none() && epoch == oracle.epoch()).then_some("has no ledger")
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::OperatorHarness;
    use super::*;
    use serde_json::json;

    async fn deleted(harness: &mut OperatorHarness) -> String {
        let uid = harness.create_shop("o1", 0).await;
        harness.delete(&shop::gvk(), "o1").await;
        uid
    }

    async fn lets_go(harness: &mut OperatorHarness) {
        let patch = json!({"metadata": {"finalizers": null}});
        harness.patch(&shop::gvk(), "o1", &patch).await;
    }

    fn cleans_up(harness: &mut OperatorHarness, uid: &str) {
        let (key, uid) = (OperatorHarness::key("o1"), uid.to_owned());
        harness.did(OperatorAction::CleansUp { key, uid });
    }

    fn cleaned_up(harness: &mut OperatorHarness, uid: &str) {
        let (key, uid) = (OperatorHarness::key("o1"), uid.to_owned());
        harness.did(OperatorAction::CleanedUp { key, uid });
    }

    #[tokio::test]
    async fn a_shop_that_goes_without_cleanup_is_reported() {
        let mut harness = OperatorHarness::new(Cleanups::default()).await;
        deleted(&mut harness).await;
        lets_go(&mut harness).await;
        assert!(harness.found("was never cleaned up"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_shop_that_goes_after_its_cleanup_is_fine() {
        let mut harness = OperatorHarness::new(Cleanups::default()).await;
        let uid = deleted(&mut harness).await;
        cleans_up(&mut harness, &uid);
        harness.create_ledger(&uid).await;
        cleaned_up(&mut harness, &uid);
        lets_go(&mut harness).await;
        assert!(harness.all().is_empty(), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_shop_is_forgotten_once_no_process_can_be_shown_it() {
        let mut harness = OperatorHarness::new(Cleanups::default()).await;
        let uid = deleted(&mut harness).await;
        let key = OperatorHarness::key("o1");
        harness.did(OperatorAction::RemovesFinalizer { key });
        lets_go(&mut harness).await;
        cleans_up(&mut harness, &uid);
        assert!(
            harness.all().is_empty(),
            "a process may know it: {:?}",
            harness.all()
        );
        for name in ["o2", "o3"] {
            harness.wait(4 * SWEEP);
            harness.create(&shop::gvk(), name, &shop::spec(0)).await;
            harness.delete(&shop::gvk(), name).await;
        }
        cleans_up(&mut harness, &uid);
        assert!(harness.found("never deleted"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_finalizer_that_foreign_clients_remove_is_not_reported() {
        let mut harness = OperatorHarness::new(Cleanups::default()).await;
        deleted(&mut harness).await;
        let key = OperatorHarness::key("o1");
        harness.did(OperatorAction::RemovesFinalizer { key });
        lets_go(&mut harness).await;
        assert!(harness.all().is_empty(), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn the_cleanup_of_a_shop_that_lives_is_reported() {
        let mut harness = OperatorHarness::new(Cleanups::default()).await;
        let uid = harness.create_shop("o1", 0).await;
        cleans_up(&mut harness, &uid);
        assert!(harness.found("was never deleted"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_cleanup_without_a_ledger_is_reported() {
        let mut harness = OperatorHarness::new(Cleanups::default()).await;
        let uid = deleted(&mut harness).await;
        cleans_up(&mut harness, &uid);
        cleaned_up(&mut harness, &uid);
        lets_go(&mut harness).await;
        assert!(harness.found("has no ledger"), "{:?}", harness.all());
    }

    #[tokio::test]
    async fn a_shop_that_a_backup_brings_back_to_life_has_to_be_cleaned_up_again() {
        let mut harness = OperatorHarness::new(Cleanups::default()).await;
        let uid = harness.create_shop("o1", 0).await;
        let backup = harness.backup();
        harness.delete(&shop::gvk(), "o1").await;
        cleans_up(&mut harness, &uid);
        harness.create_ledger(&uid).await;
        cleaned_up(&mut harness, &uid);
        harness.restore(&backup).await;
        harness.delete(&shop::gvk(), "o1").await;
        lets_go(&mut harness).await;
        assert!(harness.found("has lived since"), "{:?}", harness.all());
    }
}
