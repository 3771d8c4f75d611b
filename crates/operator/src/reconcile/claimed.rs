//! Claims: things that only one reconciler of a kind may have in an operator.

use std::sync::Arc;

use lariat_core::Gvk;
use parking_lot::Mutex;

/// Something that only one reconciler of a kind may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Claim {
    /// The type of the condition in which it reports errors.
    Condition(Arc<str>),
    /// Its finalizer.
    ///
    /// With two reconcilers, the first to finish would remove it before the other has cleaned up.
    Finalizer(Arc<str>),
}

/// The claims of an operator's reconcilers.
///
/// There are few, so a list is sufficient.
#[derive(Debug, Default)]
pub(crate) struct Claimed(Mutex<Vec<(Gvk, Claim)>>);

impl Claimed {
    /// Takes all claims of a reconciler, or none if one of them is taken.
    ///
    /// The error is the claim that is taken already.
    pub(crate) fn take(&self, gvk: &Gvk, claims: &[Claim]) -> Result<(), Claim> {
        let mut all = self.0.lock();
        let is_taken = |claim: &&Claim| {
            all.iter()
                .any(|(of, taken)| is_same_kind(of, gvk) && taken == *claim)
        };
        if let Some(taken) = claims.iter().find(is_taken) {
            return Err(taken.clone());
        }
        all.extend(claims.iter().map(|claim| (gvk.clone(), claim.clone())));
        Ok(())
    }

    pub(crate) fn release(&self, gvk: &Gvk, claims: &[Claim]) {
        let is_of = |(of, claim): &(Gvk, Claim)| of == gvk && claims.contains(claim);
        self.0.lock().retain(|claimed| !is_of(claimed));
    }

    /// Returns the types of the conditions in which a kind's reconcilers report.
    pub(crate) fn conditions(&self, gvk: &Gvk) -> Vec<Arc<str>> {
        let all = self.0.lock();
        let of_kind = all.iter().filter(|(of, _)| is_same_kind(of, gvk));
        let condition = |(_, claim): &(Gvk, Claim)| match claim {
            Claim::Condition(kind) => Some(Arc::clone(kind)),
            Claim::Finalizer(_) => None,
        };
        of_kind.filter_map(condition).collect()
    }
}

/// Returns whether two kinds differ in their version only.
fn is_same_kind(one: &Gvk, other: &Gvk) -> bool {
    one.group() == other.group() && one.kind() == other.kind()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_of_a_kind_in_all_its_versions() {
        let claimed = Claimed::default();
        let kind = |version: &str, kind: &str| Gvk::new("demo.dev", version, kind);
        let ready = [Claim::Condition("Ready".into())];
        let finalizer = [Claim::Finalizer("demo.dev/a".into())];
        let both = [finalizer[0].clone(), ready[0].clone()];
        let (v1, v2) = (kind("v1", "Widget"), kind("v2", "Widget"));
        assert_eq!(claimed.take(&v1, &ready), Ok(()));
        assert_eq!(claimed.take(&v2, &both), Err(ready[0].clone()));
        let taken = claimed.take(&v2, &finalizer);
        assert_eq!(taken, Ok(()), "nothing was left behind");
        assert_eq!(claimed.take(&kind("v1", "Gadget"), &ready), Ok(()));
        assert_eq!(claimed.conditions(&v2), ["Ready".into()]);
        claimed.release(&v2, &finalizer);
        assert_eq!(claimed.take(&v1, &finalizer), Ok(()));
    }
}
