//! Admission: what webhooks and policies apply to, what they are asked, and what they answer.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook` and `policy`.

mod attributes;
mod authorizer;
mod conditions;
mod expression;
mod matching;
pub mod pod_security;
mod policy;
mod review;
mod rules;
mod structs;
mod webhook;

pub use attributes::{Attributes, ResourceName};
pub use authorizer::{Authorize, Authorized, Check};
pub use conditions::{Conditions, MatchResult};
pub use expression::{Expression, Scope};
pub use lariat_core::Operation;
pub use matching::Matching;
pub use policy::{Binding, Evaluation, Mutation, ParamRef, Policy, Violation};
pub use review::{AdmissionResponse, Denial, ReviewError, ReviewVersion};
pub use rules::{RuleScope, Rules};
pub use webhook::{FailurePolicy, Reinvocation, Webhook};
