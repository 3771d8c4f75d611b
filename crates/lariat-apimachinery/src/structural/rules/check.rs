//! The check of rules when a CRD is written.
//!
//! Syntax is the interpreter's to check; the types are checked in `expressions`.

use serde_json::Value;

use super::declared::declared;
use super::program::Program;
use super::rule::{Rule, compile};
use crate::expressions::{self, Environment, Type};
use crate::structural::node::Node;

/// An error of one validation rule of a schema.
#[derive(Debug)]
pub struct RuleFault {
    /// The index of the rule in the schema.
    pub at: usize,
    /// The member of the rule that is wrong.
    pub member: &'static str,
    /// The message.
    pub detail: String,
    /// Whether the rule uses `oldSelf`.
    pub uses_old_self: bool,
}

/// Checks the rules of one schema; `root` is true for that of a whole resource.
///
/// A rule that uses `oldSelf` is reported too, with an empty detail.
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
/// assert!(check_rules(&with_rule("self.size <= 9"), false).is_empty());
/// let faults = check_rules(&with_rule("self.size <="), false);
/// assert!(faults[0].detail.starts_with("compilation failed"));
/// ```
#[must_use]
pub fn check_rules(schema: &Value, root: bool) -> Vec<RuleFault> {
    // Compiling the node has compiled its rules; their errors are kept in it and worded here.
    let node = Node::compile(schema);
    let mut faults = Vec::new();
    if node.rules.is_empty() {
        return faults;
    }
    let this = declared(&node, root);
    for (at, rule) in node.rules.iter().enumerate() {
        let mut report = |member, detail| {
            faults.push(RuleFault {
                at,
                member,
                detail,
                uses_old_self: rule.is_transition,
            });
        };
        let environment = environment_of(rule, this.as_ref());
        let broken = check_rule(rule, &environment).err();
        let is_broken = broken.is_some();
        if let Some(detail) = broken {
            report("rule", detail);
        }
        // `compileRule` does not look at the rest of a rule that it cannot compile: `oldSelf` counts as unused.
        let uses_old_self = rule.is_transition && !is_broken;
        // Reported without an error: whether `oldSelf` may be used here depends on the lists around this schema, which
        // the caller knows.
        if uses_old_self {
            report("rule", String::new());
        } else if rule.optional_old_self.is_some() {
            let detail = "may not be set if oldSelf is not used in rule";
            report("optionalOldSelf", detail.to_owned());
        }
        if !is_broken && let Err(detail) = check_message(rule, &environment) {
            report("messageExpression", detail);
        }
    }
    faults
}

fn environment_of(rule: &Rule, this: Option<&Type>) -> Environment {
    let this = this.unwrap_or(&Type::Dyn).clone();
    let mut environment = Environment::default();
    environment.declare("self", this.clone());
    let before = match rule.optional_old_self {
        Some(true) => Type::optional(this),
        _ => this,
    };
    environment.declare("oldSelf", before);
    environment
}

fn check_rule(rule: &Rule, environment: &Environment) -> Result<(), String> {
    let failed = |detail: String| format!("compilation failed: {detail}");
    match found_type(&rule.program, &rule.text, environment).map_err(failed)? {
        Some(Type::Bool) | None => Ok(()),
        Some(_) => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

fn check_message(rule: &Rule, environment: &Environment) -> Result<(), String> {
    let Some(program) = &rule.message_program else {
        return Ok(());
    };
    let failed = |detail: String| format!("messageExpression compilation failed: {detail}");
    match found_type(program, &rule.message_text, environment).map_err(failed)? {
        Some(Type::Text) | None => Ok(()),
        Some(_) => Err("messageExpression must evaluate to a string".to_owned()),
    }
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
    found_type(&compile(text), text, environment)
}

fn found_type(
    program: &Result<Program, String>,
    text: &str,
    environment: &Environment,
) -> Result<Option<Type>, String> {
    let program = program.as_ref().map_err(Clone::clone)?;
    program.walk(|_| expressions::check(text, environment))
}
