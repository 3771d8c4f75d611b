//! Stage 1: a switch that is not down is put down.

use lariat::operator::Rule;
use lariat::prelude::*;

use super::lever::{Machine, flip};

/// Registers the reconciler of machines.
///
/// # Errors
///
/// Machines have a handler of this name already.
pub fn register(operator: &Operator) -> anyhow::Result<()> {
    let machines = operator.api::<Machine>();
    let kind = operator.factory().for_object::<Machine>();
    operator
        .reconciler("machines", &kind)
        // For `operator.cluster_role()`; reading machines is known.
        .needs(Rule::of(&kind).verbs(["patch"]))
        .register(move |cx| reconcile(cx, machines.clone()))?;
    Ok(())
}

// The reconciler is not called for a deleted machine, so it needs no `IgnoreNotFound`.
async fn reconcile(cx: Reconcile<Machine>, machines: CachedApi<Machine>) -> HandlerResult {
    if cx.object().is_down() {
        Ok(Outcome::done())
    } else {
        flip(&cx, &machines).await
    }
}
