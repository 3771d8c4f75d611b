//! Registering many handlers, or none.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use lariat_cache::View;
use lariat_core::Gvk;

use super::Shared;
use crate::controller::{Kinds, NewHandler, Registration, SharedController, Slot};
use crate::error::RegisterError;
use crate::handler::{Handler, HandlerOptions};

/// Handlers that are to be registered together, of whatever kinds.
///
/// Until [`commit`](Self::commit) nothing is created and nobody is called. Dropping it, or
/// [`rollback`](Self::rollback), forgets what was asked for.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::{Pod, Service};
/// use lariat_controller::{Context, HandlerResult, Outcome, RegisterError, SharedControllerFactory};
///
/// async fn log<K: lariat_cache::View>(cx: Context<K>) -> HandlerResult {
///     println!("{}", cx.key());
///     Ok(Outcome::done())
/// }
///
/// # fn example(factory: &SharedControllerFactory) -> Result<(), RegisterError> {
/// let mut transaction = factory.transaction();
/// transaction.register_handler(&factory.for_object::<Pod>(), "log", log);
/// transaction.register_handler(&factory.for_object::<Service>(), "log", log);
/// let registrations = transaction.commit()?;
/// # Ok(()) }
/// ```
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    shared: Arc<Shared>,
    planned: Vec<Planned>,
}

struct Planned {
    slot: Arc<Slot>,
    new: NewHandler,
    register: fn(&Arc<Slot>, NewHandler) -> Registration,
}

impl Transaction {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            planned: Vec::new(),
        }
    }

    /// Plans to register a handler.
    pub fn register_handler<K: View>(
        &mut self,
        controller: &SharedController<K>,
        name: &str,
        handler: impl Handler<K>,
    ) {
        self.register_handler_with(controller, name, HandlerOptions::default(), handler);
    }

    /// Plans to register a handler with options of its own.
    pub fn register_handler_with<K: View>(
        &mut self,
        controller: &SharedController<K>,
        name: &str,
        options: HandlerOptions,
        handler: impl Handler<K>,
    ) {
        self.planned.push(Planned {
            slot: Arc::clone(controller.slot()),
            new: controller.new_handler(name, options, handler),
            register: Registration::begin::<K>,
        });
    }

    /// Registers all handlers, in the order in which they were planned.
    ///
    /// # Errors
    ///
    /// As for [`SharedController::register_handler`]; then none is registered, and nothing was created.
    ///
    /// # Panics
    ///
    /// If the factory runs and this is the first use of a kind: outside a tokio runtime.
    pub fn commit(self) -> Result<Vec<Registration>, RegisterError> {
        let _alone = self.shared.registering();
        let mut names: HashSet<(&Gvk, &str)> = HashSet::new();
        for Planned { slot, new, .. } in &self.planned {
            if !std::ptr::addr_eq(slot.factory().as_ptr(), Arc::as_ptr(&self.shared)) {
                let gvk = slot.gvk().clone();
                return Err(RegisterError::ForeignController { gvk });
            }
            slot.check(new)?;
            if !names.insert((slot.gvk(), &new.name)) {
                return Err(RegisterError::NameTaken {
                    gvk: slot.gvk().clone(),
                    name: new.name.clone(),
                });
            }
        }
        drop(names);
        let register = |planned: Planned| (planned.register)(&planned.slot, planned.new);
        Ok(self.planned.into_iter().map(register).collect())
    }

    /// Forgets all handlers; the same as dropping the transaction.
    pub fn rollback(self) {}
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.planned.iter().map(|planned| {
            let Planned { slot, new, .. } = planned;
            format!("{} {}", slot.gvk(), new.name)
        });
        f.debug_list().entries(names).finish()
    }
}
