//! The operator's reconciler of shops: applies children, writes the status, and cleans up.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams};
use lariat_controller::{HandlerError, HandlerResult, Outcome};
use lariat_core::ObjectKey;
use lariat_operator::{ApiError, CachedApi, ConditionUpdate, Desired, Event, Operator, Reconcile};
use lariat_sim::Process;
use lariat_sim::internals::PLANNED;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time;

use super::setup::Setup;
use crate::operator_action::OperatorAction;
use crate::shop;
use crate::trial::dice::Dice;

type Cx = Reconcile<DynamicObject>;

/// The reconciler of shops, with its cleanup and its state.
pub(super) struct ShopReconciler {
    process: Process,
    ledgers: CachedApi<ConfigMap>,
    dice: Dice,
    /// Out of a thousand calls, how many misbehave.
    bad: AtomicU32,
    empties: bool,
    /// Shops of which it was published that they are settled.
    settled: Mutex<BTreeSet<String>>,
}

impl ShopReconciler {
    pub(super) fn new(process: &Process, operator: &Operator, setup: Setup) -> Self {
        let mut random = fastrand::Rng::with_seed(setup.seed ^ u64::from(process.incarnation()));
        Self {
            process: process.clone(),
            ledgers: operator.api::<ConfigMap>(),
            bad: AtomicU32::new([0, 50, 200][random.usize(..3)]),
            dice: Dice::new(random),
            empties: setup.empties,
            settled: Mutex::default(),
        }
    }

    /// Misbehaves more often from now on, or less.
    pub(super) fn misbehave(&self, number: u32) {
        self.bad.store(number % 400, Ordering::Relaxed);
    }

    /// Updates a shop's children to match its spec, and its status to match them.
    pub(super) async fn reconcile(&self, cx: &Cx) -> HandlerResult {
        self.maybe_misbehave().await?;
        let shop = json!({"spec": cx.object().data["spec"]});
        let stocked = self.stock(cx, &shop).await;
        self.maybe_misbehave().await?;
        // The status says that something is in the way, so it is written before the error is returned.
        self.report(cx, stocked.is_ok()).await?;
        stocked?;
        let (key, uid) = of(cx);
        OperatorAction::Reconciled { key, uid }.report(&self.process);
        Ok(Outcome::done())
    }

    /// Applies both sets, the second also if the first could not be applied.
    async fn stock(&self, cx: &Cx, shop: &Value) -> Result<(), HandlerError> {
        let mut result = Ok(());
        let mut changed = 0;
        for (set, objects) in shop::wanted(cx.key(), shop) {
            let desired = objects
                .into_iter()
                .fold(Desired::new(), Desired::with_value);
            match cx.apply_set(set).apply(desired).await {
                Ok(applied) if applied.is_unchanged() => {}
                Ok(applied) => changed += applied.objects().len(),
                Err(error) => result = Err(HandlerError::from(error)),
            }
        }
        match &result {
            Err(error) => self.publish(cx, Event::warning("Blocked", error.to_string()), "Blocked"),
            Ok(()) if changed > 0 => {
                let note = format!("looked at {changed} objects");
                self.publish(cx, Event::normal("Stocked", note), "Stocked");
            }
            Ok(()) => {}
        }
        // While faults last, an Event may be lost; the checker expects this one to arrive.
        if result.is_ok() && self.process.faults_ended() {
            let is_first = self.settled.lock().insert(cx.raw().uid().to_string());
            if is_first {
                let event = Event::normal(shop::SETTLED, "all is in order");
                self.publish(cx, event, shop::SETTLED);
            }
        }
        result
    }

    fn publish(&self, cx: &Cx, event: Event, reason: &'static str) {
        let (_, uid) = of(cx);
        OperatorAction::Published { uid, reason }.report(&self.process);
        cx.event(event);
    }

    /// Writes the status in two ways, and reads the cache afterwards.
    async fn report(&self, cx: &Cx, is_stocked: bool) -> Result<(), HandlerError> {
        let generation = cx.raw().generation().unwrap_or_default();
        let newest = cx.newest().generation().unwrap_or_default();
        let written = cx.update_status(|status: &mut Value| {
            let before = status["observedGeneration"].as_i64().unwrap_or_default();
            // Another replica may have seen a newer one; what no object has is from before a backup was restored.
            if generation >= before || before > newest {
                status["observedGeneration"] = generation.into();
                status["stocked"] = is_stocked.into();
            }
        });
        if written.await? {
            self.read_written(cx);
        }
        let synced = if is_stocked {
            ConditionUpdate::is_true("Synced", "Stocked")
        } else {
            ConditionUpdate::is_false("Synced", "Blocked")
        };
        if cx.set_condition(&synced).await? {
            self.read_written(cx);
        }
        Ok(())
    }

    /// Reports the status just written, and reads the cache.
    ///
    /// To be called after each write on its own: a later one that finds nothing to change may have read a newer state,
    /// which others wrote and the cache need not have yet.
    fn read_written(&self, cx: &Cx) {
        let version = cx.newest().version().to_string();
        self.process.has_written(cx.gvk(), cx.key(), &version);
        let read = cx.cache().store().get(cx.key());
        self.process.has_read(cx.gvk(), cx.key(), read.as_ref());
    }

    /// Enters the shop into its ledger, which stays.
    pub(super) async fn clean_up(&self, cx: &Cx) -> HandlerResult {
        let (key, uid) = of(cx);
        let cleans_up = OperatorAction::CleansUp {
            key: key.clone(),
            uid: uid.clone(),
        };
        cleans_up.report(&self.process);
        self.maybe_misbehave().await?;
        if self.empties && !self.empty(cx).await? {
            // The children may take a while to go: the cleanup is called again instead of waiting in one call.
            return Ok(Outcome::requeue_after(Duration::from_secs(1)));
        }
        self.enter(&shop::ledger(&uid)).await?;
        self.maybe_misbehave().await?;
        OperatorAction::CleanedUp { key, uid }.report(&self.process);
        Ok(Outcome::done())
    }

    /// Applies empty sets, and returns whether nothing is left of them.
    async fn empty(&self, cx: &Cx) -> Result<bool, HandlerError> {
        let mut is_gone = true;
        for set in ["stock", "keys"] {
            let applied = cx.apply_set(set).apply(Desired::new()).await?;
            is_gone &= applied.is_gone();
        }
        Ok(is_gone)
    }

    async fn enter(&self, ledger: &ObjectKey) -> Result<(), ApiError> {
        let written = match self.ledgers.get_opt(ledger).await? {
            Some(_) => self.enter_again(ledger).await,
            None => {
                let metadata = ObjectMeta {
                    name: Some(ledger.name().to_owned()),
                    namespace: ledger.namespace().map(str::to_owned),
                    ..ObjectMeta::default()
                };
                let map = ConfigMap {
                    metadata,
                    ..ConfigMap::default()
                };
                match self.ledgers.create(&map).await {
                    // The cache is behind, or an answer was lost.
                    Err(error) if error.is_already_exists() => self.enter_again(ledger).await,
                    created => created,
                }
            }
        };
        let version = written?.metadata.resource_version.unwrap_or_default();
        let maps = shop::config_maps();
        self.process.has_written(&maps, ledger, &version);
        let read = self.ledgers.cache().store().get(ledger);
        self.process.has_read(&maps, ledger, read.as_ref());
        Ok(())
    }

    async fn enter_again(&self, ledger: &ObjectKey) -> Result<ConfigMap, ApiError> {
        let entry = self.dice.below(1_000_000).to_string();
        let patch = Patch::Merge(json!({"data": {"entered": entry}}));
        self.ledgers
            .patch(ledger, &PatchParams::default(), &patch)
            .await
    }

    pub(super) async fn gone(&self, cx: &Cx) -> HandlerResult {
        self.maybe_misbehave().await?;
        let (key, uid) = of(cx);
        OperatorAction::Ended { key, uid }.report(&self.process);
        Ok(Outcome::done())
    }

    async fn maybe_misbehave(&self) -> Result<(), HandlerError> {
        let is_bad = self.dice.below(1000) < self.bad.load(Ordering::Relaxed);
        if self.process.faults_ended() || !is_bad {
            return Ok(());
        }
        match self.dice.below(8) {
            0 | 1 => Err("not now".into()),
            2 => Err(HandlerError::from("later")
                .retry_after(Duration::from_millis(self.dice.below(10_000).into()))),
            3 => Err(HandlerError::terminal("never")),
            4 => std::panic::panic_any(PLANNED),
            5 => std::future::pending().await,
            _ => {
                time::sleep(Duration::from_millis(self.dice.below(5_000).into())).await;
                Ok(())
            }
        }
    }
}

fn of(cx: &Cx) -> (ObjectKey, String) {
    (cx.key().clone(), cx.raw().uid().to_string())
}
