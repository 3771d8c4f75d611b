//! Registers several handlers, or none.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use lariat_cache::View;
use lariat_core::Gvk;

use super::FactoryCore;
use crate::controller::{Kinds, NewHandler, Registration, SharedController, Slot};
use crate::error::RegisterError;
use crate::handler::Handler;

/// Registers several handlers, of any kinds, or none of them.
///
/// Nothing is created and no handler is called before [`commit`](Self::commit). Dropping the transaction, or
/// [`rollback`](Self::rollback), discards it.
///
/// Use it for modules that consist of several handlers: if one name is taken, none of the module's handlers runs.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::{Pod, Service};
/// use lariat::controller::RegisterError;
/// use lariat::{Context, HandlerResult, Outcome, SharedControllerFactory};
///
/// async fn log<K: lariat::cache::View>(cx: Context<K>) -> HandlerResult {
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
    factory: Arc<FactoryCore>,
    planned: Vec<Planned>,
}

struct Planned {
    slot: Arc<Slot>,
    new: NewHandler,
    register: fn(&Arc<Slot>, NewHandler) -> Registration,
}

impl Transaction {
    pub(super) fn new(factory: Arc<FactoryCore>) -> Self {
        Self {
            factory,
            planned: Vec::new(),
        }
    }

    /// Adds a handler to the transaction.
    ///
    /// [`commit`](Self::commit) registers it, as [`SharedController::register_handler`] would.
    pub fn register_handler<K: View>(
        &mut self,
        controller: &SharedController<K>,
        name: &str,
        handler: impl Handler<K>,
    ) {
        self.planned.push(Planned {
            slot: Arc::clone(controller.slot()),
            new: controller.new_handler(name, handler),
            register: Registration::begin::<K>,
        });
    }

    /// Registers all handlers, in the order in which they were added.
    ///
    /// # Errors
    ///
    /// As for [`SharedController::register_handler`], or [`ForeignController`](RegisterError::ForeignController) if a
    /// controller belongs to another factory. No handler is registered, and nothing is created.
    pub fn commit(self) -> Result<Vec<Registration>, RegisterError> {
        let _alone = self.factory.registering();
        // All checks come first, under the lock that every registration takes. So nothing can take a name between the
        // checks and the registrations below, and these cannot fail half-way.
        let mut names: HashSet<(&Gvk, &str)> = HashSet::new();
        for Planned { slot, new, .. } in &self.planned {
            if !std::ptr::addr_eq(slot.factory().as_ptr(), Arc::as_ptr(&self.factory)) {
                let gvk = slot.gvk().clone();
                return Err(RegisterError::ForeignController { gvk });
            }
            slot.check(new)?;
            // `check` sees registered handlers only, not those of this transaction.
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

    /// Discards the transaction; the same as dropping it.
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
