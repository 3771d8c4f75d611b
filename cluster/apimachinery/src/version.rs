//! The version of Kubernetes whose API is served.

/// The version of Kubernetes whose types and rules this crate has.
///
/// `cluster/scripts/generate.py` reads it here, and `tests/version.rs` finds the manifests, scripts and pages that name
/// another one.
///
/// ```
/// assert!(lariat_apimachinery::KUBERNETES.starts_with("1."));
/// ```
pub const KUBERNETES: &str = "1.36";
