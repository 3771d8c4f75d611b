//! Leases.

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::parts::at;

/// Source: `k8s.io/kubernetes/pkg/apis/coordination/validation`.
pub(super) fn validate(object: &Object) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let number = |name: &str| at(object, &["spec", name]).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        let message = "must be greater than 0";
        let field = "spec.leaseDurationSeconds";
        causes.push(StatusCause::invalid(field, &seconds.into(), message));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        let message = "must be greater than or equal to 0";
        causes.push(StatusCause::invalid(
            "spec.leaseTransitions",
            &count.into(),
            message,
        ));
    }
    causes
}
