//! Stage 3: the machine notes when it saw the switch, and asks to be called again.
//!
//! Nobody sleeps, so one worker is enough for any number of machines. The note is in the status, so a restart in the
//! middle waits for the rest only.
//!
//! The lecture notes the time while the switch is down too, and takes the note back in a write of the spec, which leaves
//! the status as it is: from the second time on the machine flips at once. Here a note counts for the generation it was
//! made in. The flip itself begins the next one, so there is no second write to lose.

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
        // For `operator.cluster_role()`; that it reads machines is known.
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
