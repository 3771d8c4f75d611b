//! The check of rules when a CRD is written.
//!
//! Syntax is the interpreter's to check; the types are checked in `expressions`.

use serde_json::Value;

use super::declared::{Declared, LARGEST_REQUEST, declared};
use super::program::Program;
use super::rule::{Rule, compile};
use crate::expressions::{self, Checked, Environment, Type, Variables};
use crate::structural::node::Node;

/// What the check of the rules of one schema found.
#[derive(Debug, Default)]
pub struct CheckedRules {
    /// The rules, in the order of the schema; empty if its values are not visible.
    pub rules: Vec<CheckedRule>,
    /// Whether rules cannot see the values of the schema, because it does not say what they are.
    pub has_no_type: bool,
    /// How many values of the schema fit into one request.
    pub most_values: u64,
}

/// What the check of one rule found.
#[derive(Debug, Default)]
pub struct CheckedRule {
    /// The highest cost of evaluating the rule once; zero for one that does not compile.
    pub cost: u64,
    /// Why the rule does not compile.
    pub fault: Option<String>,
    /// The highest cost of its message expression.
    pub message_cost: u64,
    /// Why its message expression does not compile.
    pub message_fault: Option<String>,
    /// Whether the rule uses `oldSelf`.
    pub uses_old_self: bool,
}

impl CheckedRules {
    /// Returns the reasons why expressions do not compile.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        let rules = self.rules.iter();
        let faults = rules.flat_map(|rule| [&rule.fault, &rule.message_fault]);
        faults.filter_map(Option::as_deref)
    }
}

/// Checks the rules of one schema; `root` is true for that of a whole resource.
///
/// ```
/// use lariat_apimachinery::structural::check_rules;
/// use serde_json::json;
///
/// let with_rule = |rule: &str| json!({
///     "type": "object",
///     "properties": {"size": {"type": "integer"}},
///     "x-kubernetes-validations": [{"rule": rule}],
/// });
/// let checked = check_rules(&with_rule("self.size <= 9"), false);
/// assert_eq!((checked.faults().count(), checked.rules[0].cost), (0, 3));
/// let checked = check_rules(&with_rule("self.size <="), false);
/// assert!(checked.faults().any(|fault| fault.starts_with("compilation failed")));
/// ```
#[must_use]
pub fn check_rules(schema: &Value, root: bool) -> CheckedRules {
    // Compiling the node has compiled its rules; their errors are kept in it and worded here.
    let node = Node::compile_without_rules_below(schema);
    if node.rules.is_empty() {
        return CheckedRules::default();
    }
    let Some(this) = declared(&node, root) else {
        return CheckedRules {
            has_no_type: true,
            ..CheckedRules::default()
        };
    };
    let with_comma = this.dimensions.min_json_bytes() + 1;
    CheckedRules {
        has_no_type: false,
        rules: node.rules.iter().map(|rule| check(rule, &this)).collect(),
        most_values: (LARGEST_REQUEST / with_comma).cast_unsigned(),
    }
}

/// Checks a rule of a schema.
// `compileRule`.
fn check(rule: &Rule, this: &Declared) -> CheckedRule {
    let environment = environment_of(rule, &this.kind);
    let mut checked = CheckedRule::default();
    match check_rule(rule, &environment, this) {
        Ok(cost) => checked.cost = cost,
        // The rest of a rule that does not compile is not looked at: `oldSelf` counts as unused.
        Err(fault) => {
            checked.fault = Some(fault);
            return checked;
        }
    }
    checked.uses_old_self = rule.is_transition;
    match check_message(rule, &environment, this) {
        Ok(cost) => checked.message_cost = cost,
        Err(fault) => checked.message_fault = Some(fault),
    }
    checked
}

fn environment_of(rule: &Rule, this: &Type) -> Environment {
    let mut environment = Environment::default();
    environment.declare("self", this.clone());
    let before = match rule.optional_old_self {
        Some(true) => Type::optional(this.clone()),
        _ => this.clone(),
    };
    environment.declare("oldSelf", before);
    environment
}

/// Returns the cost of a rule.
fn check_rule(rule: &Rule, environment: &Environment, this: &Declared) -> Result<u64, String> {
    let failed = |detail: String| format!("compilation failed: {detail}");
    let checked = compiled(&rule.program, &rule.text, environment, this).map_err(failed)?;
    match checked {
        Some(Checked {
            kind: Type::Bool,
            cost,
        }) => Ok(cost),
        None => Ok(0),
        Some(_) => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

/// Returns the cost of a message.
fn check_message(rule: &Rule, environment: &Environment, this: &Declared) -> Result<u64, String> {
    let Some(program) = &rule.message_program else {
        return Ok(0);
    };
    let failed = |detail: String| format!("messageExpression compilation failed: {detail}");
    let checked = compiled(program, &rule.message_text, environment, this).map_err(failed)?;
    match checked {
        Some(Checked {
            kind: Type::Text,
            cost,
        }) => Ok(cost),
        None => Ok(0),
        Some(_) => Err("messageExpression must evaluate to a string".to_owned()),
    }
}

fn compiled(
    program: &Result<Program, String>,
    text: &str,
    environment: &Environment,
    this: &Declared,
) -> Result<Option<Checked>, String> {
    let program = program.as_ref().map_err(Clone::clone)?;
    let variables = Variables {
        dimensions: &this.dimensions,
        // What the server takes for a variable always has the sizes of `self`.
        only: None,
    };
    program.walk(|_| expressions::check_with_cost(text, environment, variables))
}

/// As [`check_expression`], and estimates the cost.
///
/// # Errors
///
/// Those of [`check_expression`].
pub(crate) fn check_expression_with_cost(
    text: &str,
    environment: &Environment,
    variables: Variables<'_>,
) -> Result<Option<Checked>, String> {
    compile(text)?.walk(|_| expressions::check_with_cost(text, environment, variables))
}

/// Compiles an expression; returns the type of its value, if it is checked here.
///
/// # Errors
///
/// The compiler's sentences about it, which name the places.
pub(crate) fn check_expression(
    text: &str,
    environment: &Environment,
) -> Result<Option<Type>, String> {
    compile(text)?.walk(|_| expressions::check(text, environment))
}
