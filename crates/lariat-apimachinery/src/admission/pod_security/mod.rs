//! Pod Security: what the levels of the Pod Security Standards forbid in Pods.
//!
//! Source: `k8s.io/pod-security-admission`, its `policy` and the functions of its `admission` that compare objects.

mod check;
mod evaluate;
mod host;
mod level;
mod pod;
mod privileges;
mod profiles;
mod table;
mod texts;
mod update;
mod users;
mod violation;
mod volumes;

pub use evaluate::evaluate;
pub use level::{Level, LevelVersion, PREFIX, Policy, Version};
pub use pod::Pod;
pub use update::is_significant_update;
pub use violation::{Violation, Violations};
