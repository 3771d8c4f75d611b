//! Evaluation of the rules of a schema for a value.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;

use super::program::{self, Program};
use super::rule::Rule;
use super::values::{root_view, to_cel};
use crate::cause::StatusCause;
use crate::structural::correlate::{self, Elements};
use crate::structural::fault::{NO_FIELD, duplicate, shown};
use crate::structural::node::Node;
use crate::structural::prune::child;

/// The longest message that a message expression may return.
// `MaxEvaluatedMessageExpressionSizeBytes`.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// The rules that an object breaks.
#[derive(Debug, Default)]
pub(in crate::structural) struct Broken {
    pub(in crate::structural) causes: Vec<StatusCause>,
    /// What an unchanged part of the object broke before.
    pub(in crate::structural) tolerated: Vec<StatusCause>,
}

/// Finds the rules that an object breaks.
///
/// Rules that an unchanged part of the object broke before are tolerated, but not rules that cannot be evaluated.
pub(in crate::structural) fn evaluate(node: &Node, object: &Value, old: Option<&Value>) -> Broken {
    let checked = CheckedValue {
        value: object,
        old,
        path: "",
        root: true,
        parent_unchanged: false,
    };
    evaluate_value(node, checked)
}

/// Finds the rules that a default breaks; `path` is that of the default.
// `structuraldefaulting.validate`: the default must be valid as an unchanged value, and as a new one. Only for the
// latter no rule is tolerated.
pub(in crate::structural) fn evaluate_default(
    node: &Node,
    default: &Value,
    path: &str,
) -> Vec<StatusCause> {
    if !node.has_rules() {
        return Vec::new();
    }
    let unchanged = CheckedValue {
        value: default,
        old: Some(default),
        path,
        root: node.extensions.embedded,
        parent_unchanged: false,
    };
    let causes = evaluate_value(node, unchanged).causes;
    if causes.is_empty() {
        let old = None;
        evaluate_value(node, CheckedValue { old, ..unchanged }).causes
    } else {
        causes
    }
}

fn evaluate_value(node: &Node, checked: CheckedValue<'_>) -> Broken {
    let mut run = Run {
        context: program::context(),
        broken: Broken::default(),
    };
    run.visit(node, checked);
    run.broken
}

struct Run {
    /// What every rule may call.
    context: Context<'static>,
    broken: Broken,
}

/// A value of an object, while rules are evaluated.
#[derive(Clone, Copy)]
struct CheckedValue<'a> {
    value: &'a Value,
    /// The value that it replaces, if that is known.
    old: Option<&'a Value>,
    path: &'a str,
    /// The value is a whole resource.
    root: bool,
    /// Whether the nearest enclosing value with a known old value is unchanged.
    parent_unchanged: bool,
}

impl CheckedValue<'_> {
    fn is_unchanged(&self, node: &Node) -> bool {
        match self.old {
            // `ratchetingOptions.shouldRatchetError`: an item that cannot be matched with an old one, as in an atomic
            // list, counts as changed if the value around it did.
            // What is in an unchanged value is unchanged.
            Some(old) => self.parent_unchanged || correlate::is_unchanged(node, self.value, old),
            None => self.parent_unchanged,
        }
    }
}

impl Run {
    fn visit(&mut self, node: &Node, checked: CheckedValue<'_>) {
        // Rules do not see null, except as a member of a value above.
        if checked.value.is_null() || !node.has_rules() {
            return;
        }
        // A value's own rules come before those below it, which is the order of the causes.
        if !node.rules.is_empty() {
            self.check(node, checked);
        }
        let parent_unchanged = checked.is_unchanged(node);
        match checked.value {
            Value::Object(members) => {
                for (name, value) in members {
                    let Some(member) = node.member(name) else {
                        continue;
                    };
                    let declared = node.shape.properties.contains_key(name);
                    let path = &*if declared {
                        child(checked.path, name)
                    } else {
                        format!("{}[{name}]", checked.path)
                    };
                    let old = checked.old.and_then(|old| old.get(name));
                    let root = member.extensions.embedded;
                    let below = CheckedValue {
                        value,
                        old,
                        path,
                        root,
                        parent_unchanged,
                    };
                    self.visit(member, below);
                }
            }
            Value::Array(elements) => {
                let Some(items) = &node.shape.items else {
                    return;
                };
                let olds = Elements::of(node, checked.old);
                for (at, value) in elements.iter().enumerate() {
                    let below = CheckedValue {
                        value,
                        old: olds.find(value),
                        path: &format!("{}[{at}]", checked.path),
                        root: items.extensions.embedded,
                        parent_unchanged,
                    };
                    self.visit(items, below);
                }
            }
            _ => {}
        }
    }

    /// Evaluates the rules of one value.
    fn check(&mut self, node: &Node, checked: CheckedValue<'_>) {
        let view = |value: &Value| {
            if checked.root {
                to_cel(&root_view(value, node), Some(node), &self.context)
            } else {
                to_cel(value, Some(node), &self.context)
            }
        };
        // Converted once for all rules of the value, since large objects are costly to convert.
        let (new, old) = (view(checked.value), checked.old.map(view));
        for rule in &node.rules {
            let optional = rule.optional_old_self.unwrap_or(false);
            // A transition rule says nothing of a creation, unless it asks for an optional old value.
            if rule.is_transition && old.is_none() && !optional {
                continue;
            }
            let mut scope = self.context.new_inner_scope();
            scope.add_variable_from_value("self", new.clone());
            if let Some(old) = &old {
                scope.add_variable_from_value("oldSelf", old.clone());
            }
            let cause = if optional {
                let mut inner = scope.new_inner_scope();
                let old = old
                    .clone()
                    .map_or_else(OptionalValue::none, OptionalValue::of);
                inner.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(old)));
                judge(rule, node, checked, [&inner, &scope])
            } else {
                judge(rule, node, checked, [&scope, &scope])
            };
            // Only a rule that does not hold is tolerated for an unchanged value, not one that fails. Transition rules
            // are about a change, so they hold for an unchanged value too.
            match cause {
                Some(Judged::Broken(cause))
                    if !rule.is_transition && checked.is_unchanged(node) =>
                {
                    self.broken.tolerated.push(cause);
                }
                Some(Judged::Broken(cause) | Judged::Failed(cause)) => {
                    self.broken.causes.push(cause);
                }
                None => {}
            }
        }
    }
}

/// Why a rule refuses a value.
enum Judged {
    /// It does not hold.
    Broken(StatusCause),
    /// It cannot be evaluated.
    Failed(StatusCause),
}

/// Evaluates a rule; returns the cause if it does not hold.
///
/// The scopes are those of the rule and of its message.
// `validateExpressions`: the old value of a message expression is never an optional, whatever that of its rule is.
fn judge(
    rule: &Rule,
    node: &Node,
    checked: CheckedValue<'_>,
    [scope, message_scope]: [&Context<'_>; 2],
) -> Option<Judged> {
    let field = match checked.path {
        "" => NO_FIELD,
        path => path,
    };
    // For faults of the rule itself Go shows the type of the schema in place of the value.
    let kind = node.types.first().map_or("", String::as_str);
    let broken = |detail: String| {
        let message = format!("Invalid value: {kind:?}: {detail}");
        let cause = StatusCause::new("FieldValueInvalid", field, message);
        Some(Judged::Failed(cause))
    };
    let program = match &rule.program {
        Ok(program) => program,
        // Go compiles nothing for an empty rule, and skips it.
        Err(_) if rule.text.trim().is_empty() => return None,
        Err(error) => return broken(format!("rule compile error: {error}")),
    };
    match run(program, scope) {
        Ok(Cel::Bool(true)) => None,
        Ok(_) => Some(Judged::Broken(complain(rule, kind, checked, message_scope))),
        // The server's compiler finds wrong types, so this can only come of a value without a static type, such as
        // `int-or-string`.
        Err(Some(ExecutionError::NoSuchOverload)) => broken(format!(
            "'no such overload': call arguments did not match a supported operator, function or \
             macro signature for rule: {}",
            rule.label()
        )),
        Err(error) => broken(format!(
            "{} evaluating rule: {}",
            describe(error),
            rule.label()
        )),
    }
}

/// Evaluates an expression; the error is `None` if the interpreter itself failed.
pub(crate) fn run(program: &Program, scope: &Context<'_>) -> Result<Cel, Option<ExecutionError>> {
    match catch_unwind(AssertUnwindSafe(|| program.execute(scope))) {
        Ok(result) => result.map_err(Some),
        Err(_) => Err(None),
    }
}

/// Words an error as the server's interpreter does.
pub(crate) fn describe(error: Option<ExecutionError>) -> String {
    match error {
        None => "internal error".to_owned(),
        Some(ExecutionError::NoSuchKey(key)) => format!("no such key: {key}"),
        Some(ExecutionError::DivisionByZero(_)) => "division by zero".to_owned(),
        Some(ExecutionError::RemainderByZero(_)) => "modulus by zero".to_owned(),
        Some(ExecutionError::Overflow(..)) => "integer overflow".to_owned(),
        Some(ExecutionError::IndexOutOfBounds(Cel::Int(at))) => {
            format!("index out of bounds: {at}")
        }
        Some(other) => other.to_string(),
    }
}

/// Returns the cause of a broken rule, with the rule's own message if it has one.
fn complain(
    rule: &Rule,
    kind: &str,
    checked: CheckedValue<'_>,
    scope: &Context<'_>,
) -> StatusCause {
    let detail = own_message(rule, scope).unwrap_or_else(|| rule.complaint());
    let path = field_of(rule, checked.path);
    let field = match path.as_str() {
        "" => NO_FIELD,
        path => path,
    };
    // Objects and lists are not repeated in the message, since they may be large.
    let compound = matches!(kind, "object" | "array");
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => StatusCause::forbidden(field, &detail),
        Some("FieldValueRequired") => StatusCause::required(field, &detail),
        Some("FieldValueDuplicate") if compound => {
            StatusCause::new("FieldValueDuplicate", field, "Duplicate value")
        }
        Some("FieldValueDuplicate") => duplicate(field, checked.value),
        _ if compound => StatusCause::new(
            "FieldValueInvalid",
            field,
            format!("Invalid value: {detail}"),
        ),
        _ => {
            let message = format!("Invalid value: {}: {detail}", shown(checked.value));
            StatusCause::new("FieldValueInvalid", field, message)
        }
    }
}

/// Returns the message of a message expression, if it is a valid one.
fn own_message(rule: &Rule, scope: &Context<'_>) -> Option<String> {
    let program = rule.message_program.as_ref()?.as_ref().ok()?;
    let Ok(Cel::String(text)) = run(program, scope) else {
        return None;
    };
    let text = text.trim();
    // `evalMessageExpression`: a message that is no good is no error, the fixed one takes its place.
    let is_fit = !text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n');
    is_fit.then(|| text.to_owned())
}

/// Returns the field a rule complains about, which may be below its own path.
fn field_of(rule: &Rule, path: &str) -> String {
    match rule.field_path.as_str() {
        "" => path.to_owned(),
        below => child(path, below),
    }
}
