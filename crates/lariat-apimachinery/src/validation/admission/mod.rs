//! The kinds of the group `admissionregistration.k8s.io`.

mod address;
mod conditions;
mod rules;
mod webhooks;

pub(super) use webhooks::{mutating_webhooks, validating_webhooks};
