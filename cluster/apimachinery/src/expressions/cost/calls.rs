//! The cost of calls.

use super::estimator::Estimator;
use super::invocation::{Estimate, Invocation, Operand};
use super::size::Size;
use super::{library, lists, operators};
use crate::expressions::tree::{Call, Tree};
use crate::expressions::types::Type;

impl<'t> Estimator<'t> {
    pub(super) fn call(&mut self, tree: &'t Tree, call: &'t Call) -> u64 {
        if let ("dyn", [argument]) = (call.name.as_str(), call.arguments.as_slice()) {
            let cost = self.cost(argument);
            self.copy_sizes(tree, argument);
            return cost.saturating_add(1);
        }
        let (mut costs, mut arguments) = (Vec::new(), Vec::new());
        for argument in &call.arguments {
            costs.push(self.cost(argument));
            arguments.push(self.operand(argument));
        }
        let facts = self.facts;
        let Some(called) = facts.called(call) else {
            return 0;
        };
        let qualified = called.qualified.as_deref();
        let target = call.target.as_deref().filter(|_| qualified.is_none());
        let of_target = target.map_or(0, |target| self.cost(target));
        let target = target.map(|target| self.operand(target));
        let (mut cost, mut size) = (0, None);
        for signature in &called.signatures {
            let invocation = Invocation {
                tree,
                function: qualified.unwrap_or(call.name.trim_start_matches('.')),
                signature,
                target: target.as_ref(),
                arguments: &arguments,
                costs: &costs,
            };
            let estimate = self.invocation(&invocation);
            // The most expensive one of the signatures that may be meant.
            cost = cost.max(estimate.cost);
            size = self.result_size(&invocation, size, estimate.size);
        }
        self.set_size(tree, size);
        of_target.saturating_add(cost)
    }

    fn invocation(&mut self, invocation: &Invocation<'_, 't>) -> Estimate {
        let special = lists::estimate(self, invocation);
        let special = special.or_else(|| library::estimate(self, invocation));
        match special {
            Some(Estimate { cost, size }) => Estimate {
                cost: cost.saturating_add(invocation.sum()),
                size,
            },
            None => operators::estimate(self, invocation),
        }
    }

    /// Joins the sizes of the results of signatures, and notes where an element is.
    fn result_size(
        &mut self,
        invocation: &Invocation<'_, 't>,
        before: Option<Size>,
        found: Option<Size>,
    ) -> Option<Size> {
        let mut size = match (before, found) {
            (Some(before), Some(found)) => Some(before.union(found)),
            (before, found) => before.or(found),
        };
        if invocation.function == "_[_]"
            && let Some(container) = invocation.arguments[0].tree
        {
            let step = match invocation.signature.arguments[0] {
                Type::List(_) => Some("@items"),
                Type::Map(_) => Some("@values"),
                _ => None,
            };
            if let Some(step) = step {
                size = self.entry(container).map(|entry| entry.value);
                let path = self.path(container).then(step);
                self.set_path(invocation.tree, path);
            }
        }
        size.or_else(|| self.size(invocation.tree))
    }

    fn operand(&mut self, tree: &'t Tree) -> Operand<'t> {
        Operand {
            tree: Some(tree),
            path: self.path(tree),
            kind: self.facts.type_of(tree),
            size: self.size(tree),
        }
    }
}
