//! Match conditions, and the CEL expressions of admission.

use std::collections::HashSet;

use crate::structural::check_expression;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

const MOST: usize = 64;

pub(super) fn check(list: &Field<'_>, parameters: bool, causes: &mut Causes) {
    let rule = Expression {
        parameters,
        // Conditions are evaluated before variables.
        variables: false,
        wanted: Some("bool"),
    };
    causes.check_count(list, MOST);
    let mut seen = HashSet::new();
    for condition in list.items() {
        let (name, expression) = (condition.get("name"), condition.get("expression"));
        // `validateMatchCondition`: the expression comes before the name.
        rule.check(&expression, "", causes);
        causes.check_name(&name, formats::qualified_name);
        if !name.is_void() {
            causes.check_unique(&name, &mut seen);
        }
    }
}

/// The names that an expression may use, and the type it must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expression<'a> {
    /// Whether a policy has parameters.
    pub(super) parameters: bool,
    /// Whether a policy has variables.
    pub(super) variables: bool,
    /// The required type; `None` for any.
    pub(super) wanted: Option<&'a str>,
}

impl Expression<'_> {
    /// Checks that an expression is there, and can be compiled.
    pub(super) fn check(&self, at: &Field<'_>, detail: &str, causes: &mut Causes) {
        if at.text().trim().is_empty() {
            causes.required(at, detail);
            return;
        }
        let mut names = vec![
            "object",
            "oldObject",
            "request",
            "namespaceObject",
            "authorizer",
        ];
        names.extend(self.parameters.then_some("params"));
        names.extend(self.variables.then_some("variables"));
        match (check_expression(at.text(), &names), self.wanted) {
            (Err(wrong), _) => causes.invalid(at, &format!("compilation failed: {wrong}")),
            // An unknown type passes: the check here knows less than the server's compiler.
            (Ok(found), Some(wanted)) if !found.is_empty() && found != wanted => {
                causes.invalid(at, &format!("must evaluate to {wanted} but got {found}"));
            }
            (Ok(_), _) => {}
        }
    }
}
