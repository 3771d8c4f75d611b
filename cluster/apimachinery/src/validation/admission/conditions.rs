//! Match conditions, and the CEL expressions of admission.

use std::collections::HashSet;

use crate::expressions::{self, Environment, Type};
use crate::structural::check_expression;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

const MOST: usize = 64;

pub(super) fn check(list: &Field<'_>, parameters: bool, causes: &mut Causes) {
    let rule = Expression {
        parameters,
        // Conditions are evaluated before variables.
        wanted: &[Type::Bool],
        trimmed: true,
        ..Expression::default()
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
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Expression<'a> {
    /// Whether a policy has parameters.
    pub(super) parameters: bool,
    /// Whether authorization cannot be asked for.
    pub(super) no_authorizer: bool,
    /// Whether the types of patches can be made.
    pub(super) patches: bool,
    /// Whether blanks around the expression are left out, for the compiler and in messages.
    pub(super) trimmed: bool,
    /// The type of the policy's `variables`, if there are any.
    pub(super) variables: Option<&'a Type>,
    /// The types that it may have; none for any.
    pub(super) wanted: &'a [Type],
}

impl Expression<'_> {
    /// Checks that an expression is there, and can be compiled; returns its type.
    pub(super) fn check(&self, at: &Field<'_>, detail: &str, causes: &mut Causes) -> Option<Type> {
        let text = at.text();
        if text.trim().is_empty() {
            causes.required(at, detail);
            return None;
        }
        let text = if self.trimmed { text.trim() } else { text };
        self.check_as(at, text, text, causes)
    }

    /// Checks an expression that a message shows as another text.
    pub(super) fn check_as(
        &self,
        at: &Field<'_>,
        text: &str,
        shown: &str,
        causes: &mut Causes,
    ) -> Option<Type> {
        match check_expression(text, &self.environment()) {
            Err(wrong) => {
                causes.invalid_as(at, shown, &format!("compilation failed: {wrong}"));
                None
            }
            Ok(found) => {
                let found = found?;
                if !self.wanted.is_empty() && !self.wanted.contains(&found) {
                    let detail =
                        format!("must evaluate to {} but got {}", self.wish(), found.named());
                    causes.invalid_as(at, shown, &detail);
                }
                Some(found)
            }
        }
    }

    fn wish(&self) -> String {
        match self.wanted {
            [one] => one.named(),
            all => {
                let all: Vec<String> = all.iter().map(Type::named).collect();
                format!("one of [{}]", all.join(" "))
            }
        }
    }

    fn environment(&self) -> Environment {
        let mut environment = Environment::with_patches(self.patches);
        environment.declare("object", Type::Dyn);
        environment.declare("oldObject", Type::Dyn);
        environment.declare("namespaceObject", expressions::namespace());
        environment.declare("request", expressions::request());
        if self.parameters {
            environment.declare("params", Type::Dyn);
        }
        if !self.no_authorizer {
            environment.declare_authorizer();
        }
        if let Some(variables) = self.variables {
            environment.declare("variables", variables.clone());
        }
        environment
    }
}
