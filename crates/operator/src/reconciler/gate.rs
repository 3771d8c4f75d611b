//! The gate of a reconciler's writes: its guards.

use std::sync::{Arc, Weak};

use k8s_openapi::api::core::v1::ObjectReference;
use lariat_cache::GateDecision;
use lariat_controller::{Gate, GatedWrite, HandlerOptions};
use lariat_core::TableSize;
use parking_lot::Mutex;

use crate::events::{Event, Recorder};
use crate::guard::{Guard, Trip, announce, judge};
use crate::reconcile::OperatorState;

/// The reason of the Event that reports a trip.
const TRIPPED: &str = "GuardTripped";

/// The guards of a reconciler.
#[derive(Default)]
pub(super) struct Guards(Vec<Guard>);

impl Guards {
    pub(super) fn push(&mut self, guard: Guard) {
        self.0.push(guard);
    }

    /// Adds the gate to the options of a reconciler.
    pub(super) fn judge(
        &self,
        operator: &Arc<OperatorState>,
        reconciler: &str,
        options: HandlerOptions,
    ) -> HandlerOptions {
        let guarded = Arc::new(Guarded {
            reconciler: reconciler.to_owned(),
            guards: self.0.clone(),
        });
        operator.feature::<GuardedReconcilers>().add(&guarded);
        if self.0.is_empty() {
            return options;
        }
        options.gate(ReconcilerGate {
            operator: Arc::clone(operator),
            guarded,
        })
    }

    /// Appends the sizes of the guards.
    pub(super) fn table_sizes(&self, all: &mut Vec<TableSize>) {
        all.extend(self.0.iter().map(Guard::table_sizes));
    }
}

/// Admits the writes of a reconciler, as its guards decide.
struct ReconcilerGate {
    operator: Arc<OperatorState>,
    guarded: Arc<Guarded>,
}

/// A reconciler with its guards.
struct Guarded {
    reconciler: String,
    guards: Vec<Guard>,
}

/// The reconcilers of an operator that have guards, while their handlers exist.
#[derive(Default)]
struct GuardedReconcilers(Mutex<Vec<Weak<Guarded>>>);

impl GuardedReconcilers {
    fn add(&self, guarded: &Arc<Guarded>) {
        if !guarded.guards.is_empty() {
            let mut all = self.0.lock();
            // Reconcilers may be registered again and again; this keeps the list short.
            all.retain(|each| each.strong_count() > 0);
            all.push(Arc::downgrade(guarded));
        }
    }
}

/// Returns the guards of an operator with the names of their reconcilers.
///
/// They are in the order of registration.
pub(crate) fn guards(operator: &OperatorState) -> Vec<(Guard, Vec<String>)> {
    let guarded = operator.feature::<GuardedReconcilers>();
    let guarded: Vec<Arc<Guarded>> = guarded.0.lock().iter().filter_map(Weak::upgrade).collect();
    let mut all: Vec<(Guard, Vec<String>)> = Vec::new();
    for each in guarded {
        for guard in &each.guards {
            match all.iter_mut().find(|(known, _)| known.is_same(guard)) {
                Some((_, names)) => names.push(each.reconciler.clone()),
                None => all.push((guard.clone(), vec![each.reconciler.clone()])),
            }
        }
    }
    all
}

impl ReconcilerGate {
    /// Publishes a trip as an Event about the object that was being reconciled.
    fn publish(&self, write: &GatedWrite<'_>, trip: &Trip) {
        let Some((gvk, key)) = write.gvk().zip(write.key()) else {
            return;
        };
        let reference = ObjectReference {
            api_version: Some(gvk.api_version()),
            kind: Some(gvk.kind().to_owned()),
            namespace: key.namespace().map(ToOwned::to_owned),
            name: Some(key.name().to_owned()),
            uid: write.object().map(|object| object.uid().to_string()),
            ..ObjectReference::default()
        };
        let note = format!(
            "writes of {} are refused: {}",
            self.guarded.reconciler,
            trip.reason()
        );
        let event = Event::warning(TRIPPED, note);
        Recorder::of(&self.operator).publish(&reference, event);
    }
}

impl Gate for ReconcilerGate {
    fn admit(&self, write: &GatedWrite<'_>) -> GateDecision {
        // A write that is only planned must not use up a budget, nor trip a guard.
        if self.operator.only_plans() {
            return GateDecision::Pass;
        }
        judge(&self.guarded.guards, write, |trip| {
            announce(write, trip);
            self.publish(write, trip);
        })
    }
}
