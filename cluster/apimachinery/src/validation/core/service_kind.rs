//! Service types.

use crate::validation::field::Field;

/// Returns whether a Service has no address of its own.
pub(super) fn is_headless(spec: &Field<'_>) -> bool {
    // `isHeadlessService`, which looks at the list and not at the older single member.
    matches!(spec.member("clusterIPs").as_array().map(Vec::as_slice), Some([only]) if only == "None")
}

/// Returns whether a Service has a balancer outside of the cluster.
pub(super) fn is_balanced(spec: &Field<'_>) -> bool {
    spec.text_of("type") == "LoadBalancer"
}

/// Returns whether a health check of the nodes is needed.
pub(super) fn needs_check(spec: &Field<'_>) -> bool {
    is_balanced(spec) && spec.text_of("externalTrafficPolicy") == "Local"
}
