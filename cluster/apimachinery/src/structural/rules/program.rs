//! Compiled expressions, with what the interpreter does not do by itself.
//!
//! Expressions of any depth are compiled and evaluated without a stack that overflows.
//!
//! Optional members (`a.?b`), `cel.bind`, `optMap` and `optFlatMap` are written as what the interpreter knows.

use std::panic::catch_unwind;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, operators,
};
use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::ResolveResult;
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, FunctionContext, IdedExpr, ParseErrors, Value};
use kube_cel::{KubeCelExt, cel};

use crate::expressions::{self, Extent};

/// The stack for an expression in bytes.
///
/// The parser takes some hundred kilobytes for each level.
const STACK: usize = 128 << 20;

/// The most characters of an expression.
// `expressionSizeCodePointLimit` of cel-go.
const MOST_CHARACTERS: usize = 100_000;

/// How many brackets may be open at once.
// A text with more is refused here, even where the server's limit of 250 levels would admit it.
const DEEPEST: usize = 64;

/// The maximum number of operators; each may be a level of the syntax tree.
// With `STACK` this bounds the recursion of every walk over a tree.
const MOST_OPERATORS: usize = 2000;

/// The number of operators up to which the current stack is enough.
const FEW_OPERATORS: usize = 64;

/// The hidden name of a mapped value, which is null if there is none.
///
/// No expression can contain this name.
const OPTIONAL: &str = "@optional";

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Program {
    expression: IdedExpr,
    /// Whether the tree may be so deep that it needs a larger stack.
    deep: bool,
}

impl Program {
    /// Compiles an expression, which may be of any length and depth.
    ///
    /// # Errors
    ///
    /// The compiler's sentence about it.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        let size = text.chars().count();
        if size > MOST_CHARACTERS {
            return Err(format!(
                "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {size}, limit \
                 {MOST_CHARACTERS}"
            ));
        }
        let Extent { depth, operators } = expressions::extent(text);
        if depth > DEEPEST || operators > MOST_OPERATORS {
            // The sentence of cel-go for its own limit.
            return Err("ERROR: <input>:-1:0: expression recursion limit exceeded: 250".to_owned());
        }
        stacker::grow(STACK, || {
            // The generated parser may panic on some texts.
            let parsed = catch_unwind(|| parse(text));
            let parsed = parsed.map_err(|_| "the expression cannot be parsed".to_owned())?;
            let mut expression = parsed.map_err(|error| error.to_string())?;
            // Once at compile time, so that evaluating needs no more than the interpreter has.
            rewrite(&mut expression);
            Ok(Self {
                expression,
                deep: operators > FEW_OPERATORS,
            })
        })
    }

    pub(crate) fn execute(&self, context: &Context<'_>) -> ResolveResult {
        self.walk(|expression| Value::resolve(expression, context))
    }

    /// Processes the tree recursively, one stack frame for each level.
    pub(crate) fn walk<'a, T>(&'a self, work: impl FnOnce(&'a IdedExpr) -> T) -> T {
        if self.deep {
            stacker::grow(STACK, || work(&self.expression))
        } else {
            work(&self.expression)
        }
    }

    /// Returns whether the expression names a variable.
    pub(crate) fn has_variable(&self, name: &str) -> bool {
        self.walk(|expression| expression.references().has_variable(name))
    }
}

/// A deep tree is dropped level by level.
impl Drop for Program {
    fn drop(&mut self) {
        if self.deep {
            let expression = std::mem::take(&mut self.expression);
            stacker::grow(STACK, || drop(expression));
        }
    }
}

/// Returns a context with the functions that the API server has.
pub(crate) fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("string", string);
    context.add_function("dyn", dynamic);
    context
}

/// Returns a value as it is; only the compiler of the server has types to forget.
fn dynamic(_: &FunctionContext<'_, '_>, This(value): This<Value>) -> Result<Value, ExecutionError> {
    Ok(value)
}

/// Makes a text of a value; the interpreter does not of booleans.
fn string(
    call: &FunctionContext<'_, '_>,
    This(value): This<Value>,
) -> Result<Value, ExecutionError> {
    match value {
        Value::Bool(flag) => Ok(Value::String(flag.to_string().into())),
        other => cel::functions::string(call, This(other)),
    }
}

fn parse(text: &str) -> Result<IdedExpr, ParseErrors> {
    Parser::default().enable_optional_syntax(true).parse(text)
}

/// Rewrites an expression for the interpreter.
///
/// Returns whether its value is an optional member.
fn rewrite(expression: &mut IdedExpr) -> bool {
    match &mut expression.expr {
        Expr::Call(_) => return rewrite_call(expression),
        Expr::Select(select) => {
            let optional = rewrite(&mut select.operand);
            // What is a member of an optional one is optional too.
            if optional && !select.test {
                let operand = std::mem::take(&mut *select.operand);
                let field = std::mem::take(&mut select.field);
                let field = literal(LiteralValue::String(field.as_str().into()));
                // `a.?b.c` reads `c` only if `b` is there, so the second dot becomes optional too.
                expression.expr = call(operators::OPT_INDEX, vec![operand, field]);
                return true;
            }
        }
        Expr::List(list) => list.elements.iter_mut().for_each(|item| {
            rewrite(item);
        }),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    rewrite(&mut entry.key);
                    rewrite(&mut entry.value);
                }
            }
        }
        Expr::Comprehension(comprehension) => {
            rewrite(&mut comprehension.iter_range);
            rewrite(&mut comprehension.accu_init);
            rewrite(&mut comprehension.loop_cond);
            rewrite(&mut comprehension.loop_step);
            rewrite(&mut comprehension.result);
        }
        // Structs cannot be made in rules, since no message types are declared.
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
    false
}

fn rewrite_call(expression: &mut IdedExpr) -> bool {
    let Expr::Call(found) = &mut expression.expr else {
        return false;
    };
    // Written out first, then rewritten, since the arguments of a macro may have optional members.
    if let Some(written) = macro_of(found) {
        expression.expr = written;
        return rewrite(expression);
    }
    let mut optional = false;
    if let Some(target) = &mut found.target {
        rewrite(target);
    }
    for (at, argument) in found.args.iter_mut().enumerate() {
        // The first argument of an index is the value that is indexed.
        optional |= rewrite(argument) && at == 0;
    }
    match found.func_name.as_str() {
        operators::OPT_SELECT => {
            // The interpreter's own fails if there is no such member.
            operators::OPT_INDEX.clone_into(&mut found.func_name);
            true
        }
        operators::OPT_INDEX => true,
        // The interpreter's index follows an optional value by itself, but its result is optional then.
        operators::INDEX => optional,
        _ => false,
    }
}

/// Writes out a call of a macro; `None` for other calls.
fn macro_of(found: &mut CallExpr) -> Option<Expr> {
    let target = found.target.as_deref_mut()?;
    let of_cel = matches!(&target.expr, Expr::Ident(name) if name == "cel");
    match (found.func_name.as_str(), found.args.as_mut_slice()) {
        ("bind", [name, value, result]) if of_cel => {
            let name = name_of(name)?;
            Some(bind(name, std::mem::take(value), std::mem::take(result)))
        }
        (function @ ("optMap" | "optFlatMap"), [name, result]) => {
            let name = name_of(name)?;
            let optional = std::mem::take(target);
            let named = || ided(Expr::Ident(OPTIONAL.to_owned()));
            let mapped = ided(bind(name, named(), std::mem::take(result)));
            let mapped = if function == "optMap" {
                filled("optional.of(it)", mapped)?
            } else {
                mapped
            };
            let none = parse("optional.none()").ok()?;
            let is_none = call(
                operators::EQUALS,
                vec![named(), literal(LiteralValue::Null)],
            );
            let chosen = vec![ided(is_none), none, mapped];
            let chosen = ided(call(operators::CONDITIONAL, chosen));
            // It is named because it is needed twice, and the interpreter unwraps optional values that are named.
            let value = ided(method("orValue", optional, literal(LiteralValue::Null)));
            Some(bind(OPTIONAL.to_owned(), value, chosen))
        }
        _ => None,
    }
}

/// Returns the name that an expression is.
fn name_of(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

/// Names a value in another expression: a comprehension over nothing, whose beginning is the value.
fn bind(name: String, value: IdedExpr, result: IdedExpr) -> Expr {
    let nothing = || ided(Expr::List(ListExpr::new(Vec::new())));
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: nothing(),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: name,
        accu_init: value,
        loop_cond: nothing(),
        // Never evaluated: there is nothing to iterate over.
        loop_step: nothing(),
        result,
    }))
}

/// Returns a call of one argument with another one.
fn filled(text: &str, argument: IdedExpr) -> Option<IdedExpr> {
    let mut call = parse(text).ok()?;
    if let Expr::Call(call) = &mut call.expr {
        call.args = vec![argument];
    }
    Some(call)
}

fn method(name: &str, target: IdedExpr, argument: IdedExpr) -> Expr {
    Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: Some(Box::new(target)),
        args: vec![argument],
    })
}

fn call(name: &str, args: Vec<IdedExpr>) -> Expr {
    Expr::Call(CallExpr {
        func_name: name.to_owned(),
        target: None,
        args,
    })
}

fn literal(value: LiteralValue) -> IdedExpr {
    ided(Expr::Literal(value))
}

/// Numbers an expression, which only positions in error messages need.
fn ided(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_expression_overflows_the_stack() {
        let nested = |levels: usize| format!("{}1{}", "(".repeat(levels), ")".repeat(levels));
        assert!(Program::compile(&nested(DEEPEST)).is_ok());
        assert!(Program::compile(&nested(100_000)).is_err());
        let sum = |terms: usize| vec!["1"; terms].join("+");
        let program = Program::compile(&sum(MOST_OPERATORS)).unwrap();
        let expected = Value::Int(i64::try_from(MOST_OPERATORS).unwrap());
        assert_eq!(program.execute(&context()), Ok(expected));
        assert!(Program::compile(&sum(100_000)).is_err());
        assert!(Program::compile(&"!".repeat(100_000)).is_err());
        let maps = format!("{}1{}", "{'a':[".repeat(20), "]}".repeat(20));
        assert!(Program::compile(&maps).unwrap().execute(&context()).is_ok());
        // `in` is an operator whatever is around it.
        assert!(Program::compile(&vec!["1"; 5000].join("\nin\n")).is_err());
    }

    #[test]
    fn what_is_in_texts_is_no_operator() {
        let names: Vec<String> = (0..500)
            .map(|n| format!("'registry.example.com/team-a/([app-{n}'"))
            .collect();
        let text = format!("'a' in [{}]", names.join(", "));
        let program = Program::compile(&text).unwrap();
        assert_eq!(program.execute(&context()), Ok(Value::Bool(false)));
        let long = format!("'{}'", "é".repeat(MOST_CHARACTERS));
        let expected = "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100002, limit 100000";
        assert_eq!(Program::compile(&long).unwrap_err(), expected);
    }

    #[test]
    fn optional_members_and_macros_are_evaluated() {
        let mut scope = context();
        let object = serde_json::json!({"a": {"b": "c"}, "l": ["x"]});
        let object = cel::to_value(object).unwrap();
        scope.add_variable_from_value("object", object);
        for text in [
            "object.?a.b.orValue('') == 'c'",
            "object.?x.b.orValue('d') == 'd'",
            "object.a.?x.orValue('d') == 'd'",
            "object.?a.?b.hasValue()",
            "!object.?x.?b.hasValue()",
            "object[?'a'].b.orValue('') == 'c'",
            "object.?l[0].orValue('') == 'x'",
            "object.?l[5].orValue('y') == 'y'",
            "object.?x.optMap(x, x.b).orValue('e') == 'e'",
            "object.?a.optMap(x, x.b + 'd').orValue('') == 'cd'",
            "object.?a.optFlatMap(x, x.?b).orValue('') == 'c'",
            "object.?a.optMap(x, x.b).optMap(x, x + 'd').optMap(y, y + 'e').value() == 'cde'",
            "cel.bind(x, object.a, x.b == 'c' && x.b != 'd')",
            "cel.bind(x, 1, cel.bind(y, x + 1, y)) == 2",
            "optional.of(1).orValue(2) == 1",
            "string(true) == 'true' && string(1) == '1'",
            "[1, 2].map(x, object.?l[x].orValue('z')) == ['z', 'z']",
        ] {
            let program = Program::compile(text).unwrap();
            assert_eq!(program.execute(&scope), Ok(Value::Bool(true)), "{text}");
        }
    }
}
