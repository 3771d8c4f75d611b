//! Pod Security: what the levels of the Pod Security Standards forbid in Pods.
//!
//! Source: `k8s.io/pod-security-admission`, its `policy` and the functions of its `admission` that compare objects.

mod host;
mod level;
mod pod;
mod privileges;
mod profiles;
mod table;
mod violation;
mod volumes;

pub use level::{Level, LevelVersion, PREFIX, Policy, Version};
pub use pod::{Pod, is_significant_update};
pub use table::evaluate;
pub use violation::{Violation, Violations};
