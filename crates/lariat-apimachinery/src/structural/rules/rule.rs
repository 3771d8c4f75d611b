//! One rule, compiled.

use std::panic::catch_unwind;

use kube_cel::cel::Program;
use serde_json::Value;

/// One rule, compiled.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) text: String,
    pub(crate) message: String,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: String,
    pub(crate) optional_old_self: Option<bool>,
    pub(crate) program: Result<Program, String>,
    pub(crate) message_program: Option<Result<Program, String>>,
    /// The rule compares with what was before.
    pub(crate) is_transition: bool,
}

impl Rule {
    /// Compiles a rule; parts of a wrong type count as absent.
    pub(in crate::structural) fn compile(rule: &Value) -> Self {
        let text = |member: &str| rule[member].as_str().unwrap_or_default().to_owned();
        let program = compile(&text("rule"));
        let message_expression = Some(text("messageExpression")).filter(|text| !text.is_empty());
        let is_transition = program
            .as_ref()
            .is_ok_and(|program| program.references().has_variable("oldSelf"));
        Self {
            text: text("rule"),
            message: text("message"),
            reason: rule["reason"].as_str().map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: rule["optionalOldSelf"].as_bool(),
            program,
            message_program: message_expression.map(|text| compile(&text)),
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
    // The generated parser may panic on some texts.
    match catch_unwind(|| Program::compile(text)) {
        Ok(Ok(program)) => Ok(program),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the expression cannot be parsed".to_owned()),
    }
}
