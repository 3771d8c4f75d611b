//! Structural schemas: the schemas of CustomResourceDefinitions.
//!
//! A schema is compiled once for each served version. It prunes unknown fields, sets defaults and validates, in the
//! order, with the paths and in the words of the API server.
//!
//! Source: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema` and `k8s.io/kube-openapi/pkg/validation`.

pub(crate) mod field_path;
pub mod json_path;

mod compiled;
mod correlate;
mod default_check;
mod defaults;
mod embedded;
mod fault;
mod formats;
mod lists;
mod mail;
mod node;
mod outcome;
mod prune;
mod rules;
mod scalars;
#[cfg(test)]
mod tests;
mod validate;
mod walk;

pub use compiled::{Structural, is_of_metadata};
pub(crate) use fault::{duplicate, too_many};
pub(crate) use formats::is_known as is_known_format;
pub use rules::{CheckedRule, CheckedRules, check_rules};
pub(crate) use rules::{
    Program, check_expression, check_expression_with_cost, compile, context, describe, run, to_cel,
};
pub(crate) use walk::any_schema;
