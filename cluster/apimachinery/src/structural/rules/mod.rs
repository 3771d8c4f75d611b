//! Rules in CEL, the Common Expression Language: `x-kubernetes-validations`.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel`.

mod check;
mod declared;
mod evaluate;
mod program;
mod rule;
mod values;

pub use check::{CheckedRule, CheckedRules, check_rules};
pub(crate) use check::{check_expression, check_expression_with_cost};
pub(crate) use evaluate::{describe, run};
pub(super) use evaluate::{evaluate, evaluate_default};
pub(crate) use program::{Program, context};
pub(super) use rule::Rule;
pub(crate) use rule::compile;
pub(crate) use values::to_cel;
