//! Stage 2: the machine waits before it flips the switch, in the wrong place.
//!
//! While the handler sleeps its worker does nothing else: with one call at a time, as here, the second machine waits
//! for the first and the third for both. More concurrency only moves the limit; see stage 3 for what to do instead.

use lariat::operator::Rule;
use lariat::prelude::*;
use tokio::time::sleep;

use super::Pace;
use super::lever::{Machine, flip};

/// Registers the reconciler of machines, with this many concurrent calls.
///
/// # Errors
///
/// Machines have a handler of this name already.
pub fn register(operator: &Operator, pace: &Pace, concurrency: usize) -> anyhow::Result<()> {
    let machines = operator.api::<Machine>();
    let kind = operator.factory().for_object::<Machine>();
    let delay = pace.delay;
    operator
        .reconciler("machines", &kind)
        // For `operator.cluster_role()`; reading machines is known.
        .needs(Rule::of(&kind).verbs(["patch"]))
        .options(HandlerOptions::default().concurrency(concurrency))
        .register(move |cx: Reconcile<Machine>| {
            let machines = machines.clone();
            async move {
                if cx.object().is_down() {
                    return Ok(Outcome::done());
                }
                sleep(delay).await;
                flip(&cx, &machines).await
            }
        })?;
    Ok(())
}
