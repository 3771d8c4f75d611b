//! An operator that is observed.

use std::sync::{Arc, Weak};

use super::operator::Operator;
#[cfg(feature = "guard")]
use crate::guard::{Book, Guard, Plan};
use crate::reconcile::OperatorState;
#[cfg(feature = "guard")]
use crate::reconciler::guards;

/// An operator without its factory, for consoles and checks.
///
/// It keeps nothing alive. Once the operator and its reconcilers are dropped, there is nothing to read any more.
#[derive(Debug, Clone)]
pub struct WeakOperator {
    name: Arc<str>,
    state: Weak<OperatorState>,
}

impl Operator {
    /// Returns the operator without its factory.
    #[must_use]
    pub fn downgrade(&self) -> WeakOperator {
        WeakOperator {
            name: self.name().into(),
            state: Arc::downgrade(self.shared_state()),
        }
    }
}

impl WeakOperator {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the operator still exists.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.state.strong_count() > 0
    }
}

#[cfg(feature = "guard")]
impl WeakOperator {
    /// Returns the guards with the names of their reconcilers, in the order of registration.
    #[must_use]
    pub fn guards(&self) -> Vec<(Guard, Vec<String>)> {
        let state = self.state.upgrade();
        state.map_or_else(Vec::new, |state| guards(&state))
    }

    /// Returns the plan so far; `None` unless the operator [only plans](Operator::plan_only).
    #[must_use]
    pub fn planned(&self) -> Option<Plan> {
        let state = self.state.upgrade()?;
        state.only_plans().then(|| state.feature::<Book>().plan())
    }

    /// Returns the number of different writes in the plan so far; `None` unless the operator only plans.
    #[must_use]
    pub fn planned_count(&self) -> Option<usize> {
        let state = self.state.upgrade()?;
        state.only_plans().then(|| state.feature::<Book>().len())
    }
}
