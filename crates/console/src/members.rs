//! The factories and operators that a console observes.

use std::sync::Arc;

use lariat_cache::Metadata;
use lariat_controller::metrics::Collector;
use lariat_controller::{FactoryPhase, SharedController, SharedControllerFactory};
use lariat_core::Gvk;
#[cfg(feature = "operator")]
use lariat_operator::WeakOperator;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

/// The factories and operators that a console observes. None of them is kept alive.
#[derive(Clone, Default)]
pub(crate) struct Members {
    collector: Collector,
    listed: Arc<Mutex<Listed>>,
    /// Notified of each added factory.
    more: Arc<Notify>,
}

/// The operators, and the phases of all factories.
#[derive(Default)]
struct Listed {
    /// The operators with the context ids of their factories.
    #[cfg(feature = "operator")]
    operators: Vec<(Arc<str>, WeakOperator)>,
    phases: Vec<watch::Receiver<FactoryPhase>>,
}

/// A factory with its context id.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) context: Arc<str>,
    pub(crate) factory: SharedControllerFactory,
}

impl Members {
    /// Returns a copy of the members, to which others can be added separately.
    pub(crate) fn separate(&self) -> Self {
        let members = Self::default();
        for member in self.factories() {
            members.add(&member.context, &member.factory);
        }
        #[cfg(feature = "operator")]
        self.operators()
            .into_iter()
            .for_each(|(context, operator)| members.add_operator(&context, operator));
        members
    }

    /// Adds a factory. It replaces one that was added under the same context id.
    pub(crate) fn add(&self, context: &str, factory: &SharedControllerFactory) {
        self.collector.add(context, factory);
        let mut listed = self.listed.lock();
        // Factories may come and go, such as one per cluster, so those that have ended are removed here.
        listed.phases.retain(|phase| !has_ended(phase));
        listed.phases.push(factory.phases());
        drop(listed);
        self.more.notify_waiters();
    }

    /// Adds an operator of a factory, which has a context id.
    #[cfg(feature = "operator")]
    pub(crate) fn add_operator(&self, context: &str, operator: WeakOperator) {
        let mut listed = self.listed.lock();
        listed.operators.retain(|(_, operator)| operator.exists());
        listed.operators.push((context.into(), operator));
    }

    /// Returns the collector of their metrics.
    pub(crate) fn collector(&self) -> &Collector {
        &self.collector
    }

    /// Returns the factories that still exist.
    pub(crate) fn factories(&self) -> Vec<Member> {
        let factories = self.collector.factories().into_iter();
        factories
            .map(|(context, factory)| Member { context, factory })
            .collect()
    }

    /// Returns the operators that still exist, with the context ids of their factories.
    #[cfg(feature = "operator")]
    pub(crate) fn operators(&self) -> Vec<(Arc<str>, WeakOperator)> {
        let listed = self.listed.lock();
        let existing = listed.operators.iter().filter(|(_, it)| it.exists());
        existing.cloned().collect()
    }

    /// Waits until all factories have stopped or were dropped.
    ///
    /// It never resolves while there is no factory.
    pub(crate) async fn ended(&self) {
        loop {
            // Created before the list is read, so that a factory that is added in between is not missed.
            let more = self.more.notified();
            let phases = self.listed.lock().phases.clone();
            if phases.is_empty() {
                more.await;
                continue;
            }
            for mut phase in phases {
                // An error means that the factory was dropped.
                let _ = phase
                    .wait_for(|phase| *phase == FactoryPhase::Stopped)
                    .await;
            }
            // Other factories may have been added while these were awaited.
            if self.listed.lock().phases.iter().all(has_ended) {
                return;
            }
        }
    }
}

/// Returns whether a factory has stopped or was dropped.
fn has_ended(phase: &watch::Receiver<FactoryPhase>) -> bool {
    *phase.borrow() == FactoryPhase::Stopped || phase.has_changed().is_err()
}

impl Member {
    pub(crate) fn phase(&self) -> FactoryPhase {
        *self.factory.phases().borrow()
    }

    /// Returns the controller of a kind; none if it is not in use.
    ///
    /// `for_kind` would create a slot for every kind that a request names.
    pub(crate) fn controller(&self, gvk: &Gvk) -> Option<SharedController<Metadata>> {
        let mut controllers = self.factory.controllers().into_iter();
        controllers.find(|controller| controller.gvk() == gvk)
    }

    /// Returns a text with the context id before it, if there is one.
    pub(crate) fn named(&self, text: &str) -> String {
        if self.context.is_empty() {
            text.to_owned()
        } else {
            format!("{}: {text}", self.context)
        }
    }
}
