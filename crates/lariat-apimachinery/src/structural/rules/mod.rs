//! Rules in CEL, the Common Expression Language: `x-kubernetes-validations`.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel`.

mod check;
mod evaluate;
mod rule;
mod values;

pub(crate) use check::check_expression;
pub use check::{RuleFault, check_rules};
pub(super) use evaluate::evaluate;
pub(super) use rule::Rule;
