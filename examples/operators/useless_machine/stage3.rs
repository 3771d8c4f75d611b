//! Stage 3: the machine records when it saw the switch, and requeues.
//!
//! No handler sleeps, so one worker is enough for any number of machines. The record is in the status, so after a
//! restart only the rest of the delay is waited for.
//!
//! The lecture also records the time while the switch is down, and clears it in a write of the spec, which does not
//! change the status: from the second time on the machine flips immediately. Here a record applies to the generation in
//! which it was made. The flip itself starts the next one, so no second write can be lost.

use lariat::operator::Rule;
use lariat::prelude::*;

use super::Pace;
use super::lever::{Machine, MachineStatus, flip};

/// Registers the reconciler of machines.
///
/// # Errors
///
/// Machines have a handler of this name already.
pub fn register(operator: &Operator, pace: &Pace) -> anyhow::Result<()> {
    let (machines, pace) = (operator.api::<Machine>(), pace.clone());
    let kind = operator.factory().for_object::<Machine>();
    operator
        .reconciler("machines", &kind)
        // For `operator.cluster_role()`; reading machines is known.
        .writes_status()
        .needs(Rule::of(&kind).verbs(["patch"]))
        .register(move |cx| reconcile(cx, machines.clone(), pace.clone()))?;
    Ok(())
}

async fn reconcile(
    cx: Reconcile<Machine>,
    machines: CachedApi<Machine>,
    pace: Pace,
) -> HandlerResult {
    let machine = cx.object();
    if machine.is_down() {
        cx.set_status(&MachineStatus::default()).await?;
        return Ok(Outcome::done());
    }
    let generation = machine.metadata.generation;
    let note = machine.status.as_ref();
    let note = note.filter(|note| note.observed_generation == generation);
    let Some(seen) = pace.noted(note.and_then(|note| note.seen_at.as_ref())) else {
        let note = MachineStatus {
            seen_at: Some(pace.now().into()),
            observed_generation: generation,
        };
        cx.set_status(&note).await?;
        return Ok(Outcome::requeue_after(pace.delay));
    };
    let left = pace.left(seen);
    if !left.is_zero() {
        return Ok(Outcome::requeue_after(left));
    }
    flip(&cx, &machines).await
}
