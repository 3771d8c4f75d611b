//! A reference to an operator that does not keep it alive.

use std::sync::{Arc, Weak};

use super::operator::Operator;
#[cfg(feature = "guard")]
use crate::guard::{Book, Guard, Plan};
use crate::reconcile::OperatorState;
#[cfg(feature = "guard")]
use crate::reconciler::guards;

/// An operator without its factory, for consoles and checks.
///
/// It keeps nothing alive. Once the operator and its reconcilers are dropped, its methods return nothing.
#[derive(Debug, Clone)]
pub struct WeakOperator {
    name: Arc<str>,
    state: Weak<OperatorState>,
}

impl Operator {
    /// Returns a reference that keeps neither the operator nor its factory alive.
    ///
    /// ```no_run
    /// # use lariat::Operator;
    /// # fn example(operator: Operator) {
    /// let weak = operator.downgrade();
    /// assert_eq!(weak.name(), operator.name());
    /// assert!(weak.exists());
    /// # }
    /// ```
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
    /// Returns the guards with the names of their reconcilers, by registration.
    #[must_use]
    pub fn guards(&self) -> Vec<(Guard, Vec<String>)> {
        let state = self.state.upgrade();
        state.map_or_else(Vec::new, |state| guards(&state))
    }

    /// Returns the plan so far.
    ///
    /// `None` unless the operator [only plans](Operator::plan_only).
    #[must_use]
    pub fn planned(&self) -> Option<Plan> {
        let state = self.state.upgrade()?;
        state.only_plans().then(|| state.feature::<Book>().plan())
    }

    /// Returns the number of different planned writes so far.
    ///
    /// `None` unless the operator only plans.
    #[must_use]
    pub fn planned_count(&self) -> Option<usize> {
        let state = self.state.upgrade()?;
        state.only_plans().then(|| state.feature::<Book>().len())
    }
}
