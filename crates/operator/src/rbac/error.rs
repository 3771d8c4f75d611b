//! The error of missing permissions.

use std::fmt;

use lariat_core::debug_as_description;

use super::permission::Permission;
use super::policy;
use crate::yaml;

/// This program lacks permissions.
///
/// Its `Display` has the permissions, the reasons for them, and the RBAC rules to add.
pub struct AccessError {
    missing: Vec<Permission>,
}

impl AccessError {
    pub(super) fn new(missing: Vec<Permission>) -> Self {
        Self { missing }
    }

    /// Returns the missing permissions, at least one, with the missing verbs only.
    #[must_use]
    pub fn missing(&self) -> &[Permission] {
        &self.missing
    }

    /// Returns the RBAC rules to add to the role of the program, as YAML.
    #[must_use]
    pub fn yaml(&self) -> String {
        let rules = serde_json::to_value(policy::rules(&self.missing));
        yaml::document(&rules.unwrap_or_default())
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let missing: Vec<String> = self.missing.iter().map(ToString::to_string).collect();
        write!(
            f,
            "this program may not {}; add to the rules of its role:\n{}",
            missing.join("; "),
            self.yaml()
        )
    }
}

impl std::error::Error for AccessError {}

debug_as_description!(AccessError);
