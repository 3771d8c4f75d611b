//! Leases.

use super::causes::Causes;
use super::context::Context;
use super::field::Field;
use super::formats;
use super::rule::{self, Rule, Rules};

const LEASE: Rules = &[
    ("leaseDurationSeconds", Rule::Positive),
    ("leaseTransitions", Rule::NotNegative),
];

pub(super) fn lease(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateLeaseSpec`. `strategy` and `preferredHolder` were dropped with their feature.
    rule::check(&context.get("spec"), LEASE, causes);
}

/// Checks a strategy, whose path Go gets wrong.
fn check_strategy(strategy: &Field<'_>, causes: &mut Causes) {
    let at = strategy.get("strategy");
    // `ValidateCoordinatedLeaseStrategy`: names with a slash are third parties' own.
    if strategy.text().contains('/') {
        for message in formats::qualified_name(strategy.text()) {
            causes.invalid_as(&at, strategy.text(), &message);
        }
    } else if strategy.text() != "OldestEmulationVersion" {
        causes.unsupported_as(&at, strategy.text(), &["OldestEmulationVersion"]);
    }
}

pub(super) fn lease_candidate(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    causes.check_given(&spec.get("leaseName"), "");
    let (emulated, binary) = (spec.get("emulationVersion"), spec.get("binaryVersion"));
    let detail = "must be a valid semantic version";
    let read = |at: &Field<'_>, causes: &mut Causes| {
        let version = semantic(at.text());
        if version.is_none() && !at.is_void() {
            causes.invalid(at, detail);
        }
        version.unwrap_or_default()
    };
    let emulates = read(&emulated, causes);
    let is = read(&binary, causes);
    if causes.check_given(&binary, "") && !emulated.is_void() && is < emulates {
        causes.invalid(
            &binary,
            "must be greater than or equal to `emulationVersion`",
        );
    }
    let strategy = spec.get("strategy");
    if causes.check_given(&strategy, "") {
        if strategy.text() == "OldestEmulationVersion" && emulates == <[u64; 3]>::default() {
            let detail = "must be specified when `strategy` is 'OldestEmulationVersion'";
            causes.required(&emulated, detail);
        }
        check_strategy(&strategy, causes);
    }
    if let Some(old) = context.old("spec") {
        causes.check_immutable(&spec.get("leaseName"), &old.get("leaseName"));
    }
}

/// Reads the numbers of a version such as `1.2.3`, behind which more may stand.
fn semantic(text: &str) -> Option<[u64; 3]> {
    // Pre-release and build of a version do not take part in the comparison here.
    let numbers = text.split(['-', '+']).next()?;
    let numbers: Vec<u64> = numbers
        .split('.')
        .map(|each| each.parse().ok())
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
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
