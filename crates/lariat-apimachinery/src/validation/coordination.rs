//! Leases.

use super::causes::Causes;
use super::context::Context;
use super::rule::{self, Rule, Rules};

const LEASE: Rules = &[
    ("leaseDurationSeconds", Rule::Positive),
    ("leaseTransitions", Rule::NotNegative),
];

pub(super) fn lease(context: &Context<'_>, causes: &mut Causes) {
    rule::check(&context.get("spec"), LEASE, causes);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validation::testing::check_created;

    #[test]
    fn numbers_have_bounds() {
        let spec = json!({"leaseDurationSeconds": 0, "leaseTransitions": -1});
        check_created(
            "coordination.k8s.io/v1",
            "Lease",
            json!({"spec": spec}),
            &[
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        );
    }
}
