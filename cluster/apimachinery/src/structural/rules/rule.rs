//! One rule, compiled.

use serde_json::Value;

use super::program::Program;
use crate::structural::field_path;

/// One rule, compiled.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) text: String,
    pub(crate) message: String,
    pub(crate) reason: Option<String>,
    /// The field that is wrong, below the one with the rule; empty for the latter.
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
    pub(crate) program: Result<Program, String>,
    pub(crate) message_text: String,
    pub(crate) message_program: Option<Result<Program, String>>,
    /// The rule compares with what was before.
    pub(crate) is_transition: bool,
}

impl Rule {
    /// Compiles the rules of a schema.
    pub(in crate::structural) fn compile_all(schema: &Value) -> Vec<Self> {
        let rules = schema["x-kubernetes-validations"].as_array();
        let rules = rules.into_iter().flatten();
        rules.map(|rule| Self::compile(rule, schema)).collect()
    }

    /// Compiles a rule of a schema; parts of a wrong type count as absent.
    fn compile(rule: &Value, schema: &Value) -> Self {
        let text = |member: &str| rule[member].as_str().unwrap_or_default().to_owned();
        let program = compile(&text("rule"));
        let message_expression = Some(text("messageExpression")).filter(|text| !text.is_empty());
        // Go asks its compiler the same question. A rule that does not compile is none, and fails before this matters.
        let is_transition = program
            .as_ref()
            .is_ok_and(|program| program.has_variable("oldSelf"));
        Self {
            text: text("rule"),
            message: text("message"),
            reason: rule["reason"].as_str().map(str::to_owned),
            // A path that names no field is refused when the CRD is written.
            field_path: field_path::resolve(&text("fieldPath"), schema, true)
                .map_or_else(|_| String::new(), |(shown, _)| shown),
            optional_old_self: rule["optionalOldSelf"].as_bool(),
            program,
            message_program: message_expression.map(|text| compile(&text)),
            message_text: text("messageExpression"),
            is_transition,
        }
    }

    /// Returns what names the rule in a message.
    pub(super) fn label(&self) -> &str {
        match self.message.trim() {
            "" => self.text.trim(),
            message => message,
        }
    }

    /// Returns the message for objects that break the rule.
    pub(super) fn complaint(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.text.trim()),
            message => message.to_owned(),
        }
    }
}

/// Compiles an expression.
pub(crate) fn compile(text: &str) -> Result<Program, String> {
    Program::compile(text).map_err(|error| {
        // As Go's compiler shows the place in the text.
        let error = error.replace("\n| ", "\n | ");
        if text.is_empty() {
            // For an empty text Go's parser reports the column before the first one.
            error.replacen("<input>:1:1:", "<input>:1:0:", 1)
        } else {
            error
        }
    })
}
