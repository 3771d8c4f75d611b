//! The rules that apply to all kinds.

use super::fields::Fields;
use super::readiness::Readiness;

/// The condition that custom resources usually have.
const READY: &str = "Ready";

/// Returns the readiness as far as it does not depend on the kind.
///
/// `None` if the rule of the kind decides.
pub(super) fn before(object: Fields<'_>) -> Option<Readiness> {
    if object.has("/metadata/deletionTimestamp") {
        return Some(Readiness::Deleting);
    }
    if let Some(stalled) = object.true_condition("Stalled") {
        return Some(Readiness::failed(stalled.message()));
    }
    // A status of an earlier generation describes an earlier spec, and must not count as ready.
    let observed = object.number("/status/observedGeneration");
    if let Some((observed, generation)) = observed.zip(object.number("/metadata/generation"))
        && observed < generation
    {
        let message =
            format!("its controller has observed generation {observed}, not yet {generation}");
        return Some(Readiness::in_progress(message));
    }
    // After the generation: a condition of an old generation is about an old spec.
    let reconciling = object.true_condition("Reconciling")?;
    Some(Readiness::in_progress(reconciling.message()))
}

/// Returns the readiness of a kind without rules of its own.
pub(super) fn after(object: Fields<'_>) -> Readiness {
    if object.condition(READY).is_none() {
        return Readiness::Ready;
    }
    condition(object, READY)
}

/// Returns the readiness by one condition, which must be of the present generation.
pub(super) fn condition(object: Fields<'_>, kind: &str) -> Readiness {
    let Some(found) = object.condition(kind) else {
        return Readiness::in_progress(format!("it has no condition {kind} yet"));
    };
    let generation = object.number("/metadata/generation");
    let is_old = found
        .observed()
        .zip(generation)
        .is_some_and(|(observed, generation)| observed < generation);
    if is_old {
        Readiness::in_progress(format!("its condition {kind} is of an earlier generation"))
    } else if found.is("True") {
        Readiness::Ready
    } else {
        Readiness::in_progress(found.message())
    }
}
