//! The check of rules when a CRD is written.
//!
//! The server has a compiler with types; this finds the most frequent errors: syntax, undeclared names, fields that the
//! schema does not have, rules that are not boolean.

use std::panic::catch_unwind;

use kube_cel::cel::IdedExpr;
use kube_cel::cel::common::ast::{CallExpr, Expr, LiteralValue};
use serde_json::Value;

use super::program::Program;
use super::rule::{Rule, compile};
use super::values::escape;
use crate::structural::node::Node;
use crate::structural::prune::META;

/// Predeclared identifiers: types, and the first parts of function names.
const KNOWN: [&str; 22] = [
    "base64",
    "bool",
    "bytes",
    "cel",
    "double",
    "duration",
    "dyn",
    "format",
    "google",
    "int",
    "jsonpatch",
    "lists",
    "list",
    "map",
    "math",
    "null_type",
    "optional",
    "sets",
    "string",
    "timestamp",
    "type",
    "uint",
];

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
    for (at, rule) in node.rules.iter().enumerate() {
        let mut report = |member, detail| {
            faults.push(RuleFault {
                at,
                member,
                detail,
                uses_old_self: rule.is_transition,
            });
        };
        let broken = check_rule(rule, &node, root).err();
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
        if !is_broken && let Err(detail) = check_message(rule, &node, root) {
            report("messageExpression", detail);
        }
    }
    faults
}

fn check_rule(rule: &Rule, node: &Node, root: bool) -> Result<(), String> {
    let failed = |detail: String| format!("compilation failed: {detail}");
    let found = found_types(&rule.program, &rule.text, node, root).map_err(failed)?;
    if may_be("boolean", &found) {
        Ok(())
    } else {
        Err("cel expression must evaluate to a bool".to_owned())
    }
}

fn check_message(rule: &Rule, node: &Node, root: bool) -> Result<(), String> {
    let Some(program) = &rule.message_program else {
        return Ok(());
    };
    let failed = |detail: String| format!("messageExpression compilation failed: {detail}");
    let found = found_types(program, &rule.message_text, node, root).map_err(failed)?;
    if may_be("string", &found) {
        Ok(())
    } else {
        Err("messageExpression must evaluate to a string".to_owned())
    }
}

/// Returns whether a value of some types may be of one; without known types it may.
// An unknown type passes: this check must not refuse a rule that the server accepts.
fn may_be(kind: &str, found: &[String]) -> bool {
    found.is_empty() || found.iter().any(|each| each == kind)
}

/// Compiles an expression in which only some names are declared.
///
/// Returns the type of its value in CEL's words, as far as that is known.
///
/// # Errors
///
/// The compiler's sentence about it, which names the place.
pub(crate) fn check_expression(text: &str, names: &[&'static str]) -> Result<&'static str, String> {
    let program = compile(text)?;
    let names = names.iter().map(|name| (*name, Kind::Unknown)).collect();
    Ok(
        match walk_in(&program, &names).map_err(|fault| fault.shown(text))? {
            Kind::Named("boolean") => "bool",
            Kind::Named("integer") => "int",
            Kind::Named("number") => "double",
            Kind::Named("string") => "string",
            _ => "",
        },
    )
}

/// Compiles an expression with one declared name and the schema of its values.
///
/// Returns the type of its value in CEL's words, as far as that is known.
///
/// # Errors
///
/// As for [`check_expression`].
pub(crate) fn check_expression_about(
    text: &str,
    name: &'static str,
    schema: &Value,
) -> Result<&'static str, String> {
    let program = compile(text)?;
    let node = Node::compile(schema);
    let found = walk_in(&program, &vec![(name, Kind::Of(&node, false))]);
    let found = found.map_err(|fault| fault.shown(text))?;
    let kinds: Vec<&str> = match found {
        Kind::Of(node, _) => node.types.iter().map(String::as_str).collect(),
        Kind::Named(name) => vec![name],
        Kind::Unknown => Vec::new(),
    };
    Ok(match kinds[..] {
        ["boolean"] => "bool",
        ["integer"] => "int",
        ["number"] => "double",
        ["string"] => "string",
        ["array"] => "list",
        ["object"] => "map",
        _ => "",
    })
}

/// Walks an expression; returns the types of its value as far as they are known.
fn found_types(
    program: &Result<Program, String>,
    text: &str,
    node: &Node,
    root: bool,
) -> Result<Vec<String>, String> {
    let program = program.as_ref().map_err(Clone::clone)?;
    // What was before may be an optional, whose members are other ones.
    let names = vec![("self", Kind::Of(node, root)), ("oldSelf", Kind::Unknown)];
    let found = walk_in(program, &names).map_err(|fault| fault.shown(text))?;
    Ok(match found {
        Kind::Of(node, _) => node.types.clone(),
        Kind::Named(name) => vec![name.to_owned()],
        Kind::Unknown => Vec::new(),
    })
}

fn walk_in<'a>(program: &'a Program, names: &Scope<'a>) -> Result<Kind<'a>, Fault> {
    // The generated parser may make a tree on which the visitor panics.
    let walked = catch_unwind(std::panic::AssertUnwindSafe(|| {
        program.walk(|expression| visit(expression, names))
    }));
    // After a panic nothing is known, which refuses nothing.
    walked.unwrap_or(Ok(Kind::Unknown))
}

/// An error of an expression.
#[derive(Debug)]
enum Fault {
    Undeclared(String),
    NoField(String),
}

impl Fault {
    /// Returns the compiler's sentence, with the place in a text.
    fn shown(&self, text: &str) -> String {
        let (name, before, what) = match self {
            Self::Undeclared(name) => {
                let what = format!("undeclared reference to '{name}' (in container '')");
                (name, 0, what)
            }
            // Its place is that of the dot.
            Self::NoField(name) => (name, 1, format!("undefined field '{name}'")),
        };
        let (line, column, snippet) = place(name, text);
        let column = column.saturating_sub(before);
        let dots = ".".repeat(column);
        let snippet = snippet.map_or_else(String::new, |text| format!("\n | {text}\n | {dots}^"));
        format!(
            "ERROR: <input>:{}:{}: {what}{snippet}",
            line + 1,
            column + 1
        )
    }
}

/// Returns where a name is in a text: line, column, and the line itself.
fn place<'t>(name: &str, text: &'t str) -> (usize, usize, Option<&'t str>) {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    for (number, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices(name) {
            let (before, behind) = (&line[..at], &line[at + name.len()..]);
            // The first whole word with this name. The syntax tree keeps no positions, so this is the likely place.
            if !before.ends_with(is_part) && !behind.starts_with(is_part) {
                return (number, before.chars().count(), Some(line));
            }
        }
    }
    (0, 0, None)
}

/// What is known of the value of an expression.
#[derive(Debug, Clone, Copy)]
enum Kind<'a> {
    /// A value of a schema; whether it is a whole resource.
    Of(&'a Node, bool),
    Named(&'static str),
    Unknown,
}

/// The variables of comprehensions around an expression.
type Scope<'a> = Vec<(&'a str, Kind<'a>)>;

fn visit<'a>(expression: &'a IdedExpr, scope: &Scope<'a>) -> Result<Kind<'a>, Fault> {
    match &expression.expr {
        Expr::Ident(name) => identify(name, scope),
        Expr::Select(select) => {
            let operand = visit(&select.operand, scope)?;
            let found = member(operand, &select.field)?;
            Ok(if select.test {
                Kind::Named("boolean")
            } else {
                found
            })
        }
        Expr::Call(call) => visit_call(call, scope),
        Expr::Comprehension(comprehension) => {
            let range = visit(&comprehension.iter_range, scope)?;
            let mut inner = scope.clone();
            // Macros such as `all` and `map` are comprehensions by now, whose variables are declared only inside.
            inner.push((&comprehension.iter_var, element(range)));
            if let Some(second) = &comprehension.iter_var2 {
                inner.push((second, Kind::Unknown));
            }
            inner.push((&comprehension.accu_var, Kind::Unknown));
            // The beginning of the accumulator cannot see the variables.
            visit(&comprehension.accu_init, scope)?;
            visit(&comprehension.loop_cond, &inner)?;
            visit(&comprehension.loop_step, &inner)?;
            visit(&comprehension.result, &inner)
        }
        Expr::List(list) => {
            for element in &list.elements {
                visit(element, scope)?;
            }
            Ok(Kind::Named("array"))
        }
        Expr::Literal(literal) => Ok(match literal {
            LiteralValue::Boolean(_) => Kind::Named("boolean"),
            LiteralValue::String(_) => Kind::Named("string"),
            LiteralValue::Int(_) | LiteralValue::UInt(_) => Kind::Named("integer"),
            LiteralValue::Double(_) => Kind::Named("number"),
            _ => Kind::Unknown,
        }),
        _ => Ok(Kind::Unknown),
    }
}

fn identify<'a>(name: &'a str, scope: &Scope<'a>) -> Result<Kind<'a>, Fault> {
    // The innermost declaration of a name hides outer ones.
    if let Some((_, kind)) = scope.iter().rev().find(|(each, _)| *each == name) {
        return Ok(*kind);
    }
    // Names with `@` are the parser's own, for the accumulators of macros.
    if name.starts_with('@') || KNOWN.contains(&name) {
        return Ok(Kind::Unknown);
    }
    Err(Fault::Undeclared(name.to_owned()))
}

fn visit_call<'a>(call: &'a CallExpr, scope: &Scope<'a>) -> Result<Kind<'a>, Fault> {
    if let Some(target) = &call.target {
        visit(target, scope)?;
    }
    for argument in &call.args {
        visit(argument, scope)?;
    }
    Ok(match call.func_name.as_str() {
        // Only functions whose result has this type for all arguments; of others nothing is known.
        "_&&_" | "_||_" | "!_" | "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in"
        | "startsWith" | "endsWith" | "contains" | "matches" => Kind::Named("boolean"),
        "size" => Kind::Named("integer"),
        _ => Kind::Unknown,
    })
}

/// Returns the member of a value; an error if its schema has none of this name.
fn member<'a>(operand: Kind<'a>, name: &str) -> Result<Kind<'a>, Fault> {
    let Kind::Of(node, root) = operand else {
        return Ok(Kind::Unknown);
    };
    let properties = &node.shape.properties;
    // What is escaped has two underscores in a row; other names are those of their properties.
    let found = if name.contains("__") {
        let mut all = properties.iter();
        all.find(|(each, _)| escape(each) == name)
    } else {
        let found = properties.get_key_value(name);
        found.filter(|(each, _)| escape(each) == name)
    };
    if let Some((_, property)) = found {
        // The server replaces the schema of metadata by its own, so what is declared for it says nothing.
        let is_metadata = root && name == "metadata";
        return Ok(if is_metadata {
            Kind::Unknown
        } else {
            Kind::Of(property, property.extensions.embedded)
        });
    }
    if let Some(additional) = node.shape.additional_schema() {
        return Ok(Kind::Of(additional, additional.extensions.embedded));
    }
    let is_meta = root && META.contains(&name);
    // Where any member may exist or the value may be no object, a missing property proves nothing.
    let is_open = node.shape.additional.is_some() || node.extensions.int_or_string;
    if is_meta || is_open || !node.is_type("object") {
        return Ok(Kind::Unknown);
    }
    Err(Fault::NoField(name.to_owned()))
}

fn element(range: Kind<'_>) -> Kind<'_> {
    match range {
        Kind::Of(node, _) => match &node.shape.items {
            Some(items) => Kind::Of(items, items.extensions.embedded),
            // Keys of a map.
            None => Kind::Unknown,
        },
        _ => Kind::Unknown,
    }
}
