//! Usage of resources by objects, and its limits: quotas and limit ranges.
//!
//! Source: `k8s.io/kubernetes/pkg/quota/v1` and `plugin/pkg/admission/limitranger`.

mod amounts;
mod limits;
mod pods;
mod quota;
mod resize;
#[cfg(test)]
mod tests;

pub use amounts::Amounts;
pub use limits::{check_limits, set_defaults};
pub use quota::{Excess, Quota, usage};
pub use resize::{check_allocatable, required_features};
