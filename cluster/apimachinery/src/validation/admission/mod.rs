//! The kinds of the group `admissionregistration.k8s.io`.

mod address;
mod bindings;
mod conditions;
mod matching;
mod policies;
mod rules;
mod variables;
mod webhooks;

pub(crate) use address::check as check_address;
pub(super) use bindings::{mutating_policy_binding, validating_policy_binding};
pub(super) use policies::{mutating_policy, validating_policy};
pub(super) use webhooks::{mutating_webhooks, validating_webhooks};
