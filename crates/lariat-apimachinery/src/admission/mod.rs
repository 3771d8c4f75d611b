//! Admission: what webhooks and policies apply to, what they are asked, and what they answer.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook` and `policy`.

mod attributes;
mod conditions;
mod expression;
mod review;
mod rules;
mod webhook;

pub use attributes::{Attributes, Operation, ResourceName};
pub use conditions::{Conditions, Met};
pub use expression::{Expression, Scope};
pub use review::{Allowance, Denial, ReviewError, ReviewVersion};
pub use rules::{Rules, Scoped};
pub use webhook::{ClientConfig, FailurePolicy, Reinvocation, Webhook};
