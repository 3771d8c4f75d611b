//! The types of the parts of an expression.
//!
//! Source: `checker/checker.go`.

use std::collections::HashMap;

use super::cost::{self, Variables};
use super::environment::Environment;
use super::facts::Facts;
use super::literals::{Argument, Homogeneous};
use super::object::Field;
use super::parse::parse;
use super::source::{Fault, message};
use super::tree::{Kind, Literal, Select, SelectMode, Tree};
use super::types::Type;
use super::unify::Bindings;

/// The most parts of an expression that are visited, however long it is.
const MOST_VISITS: usize = 100_000;

/// The type of an expression, and the highest cost of evaluating it.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) kind: Type,
    pub(crate) cost: u64,
}

/// Returns the type of an expression; `None` for one that is not read here.
///
/// # Errors
///
/// The sentences of the server's compiler, with places.
pub(crate) fn check(text: &str, environment: &Environment) -> Result<Option<Type>, String> {
    let checked = check_and(text, environment, None, |_, _| 0)?;
    Ok(checked.map(|checked| checked.kind))
}

/// As [`check`], and estimates the cost.
///
/// # Errors
///
/// Those of [`check`].
pub(crate) fn check_with_cost(
    text: &str,
    environment: &Environment,
    variables: Variables<'_>,
) -> Result<Option<Checked>, String> {
    let estimate = |tree: &Tree, facts: &Facts| cost::estimate(tree, facts, variables);
    check_and(text, environment, Some(Facts::default()), estimate)
}

fn check_and(
    text: &str,
    environment: &Environment,
    facts: Option<Facts>,
    estimate: impl FnOnce(&Tree, &Facts) -> u64,
) -> Result<Option<Checked>, String> {
    let shown = |faults| message(text, faults);
    let Some(tree) = parse(text, environment.binds) else {
        return Ok(None);
    };
    let tree = tree.map_err(shown)?;
    let mut checker = Checker {
        environment,
        bindings: Bindings::default(),
        scope: Vec::new(),
        faults: Vec::new(),
        aggregates: Vec::new(),
        arguments: Vec::new(),
        texts: HashMap::new(),
        places: Vec::new(),
        exempt: 0,
        visits: 0,
        facts,
        most_visits: MOST_VISITS.min(1_000 + 64 * text.len()),
    };
    let found = checker.visit(&tree);
    if checker.is_spent() {
        return Ok(None);
    }
    if checker.faults.is_empty() {
        checker.check_literals();
    }
    let kind = checker.bindings.resolve(&found, true);
    if let Some(facts) = &mut checker.facts {
        facts.resolve(&checker.bindings);
    }
    // Types are incomplete once the steps are used up, which those for literals may have done.
    if checker.is_spent() {
        return Ok(None);
    }
    if !checker.faults.is_empty() {
        return Err(shown(checker.faults));
    }
    let cost = checker.facts.map_or(0, |facts| estimate(&tree, &facts));
    Ok(Some(Checked { kind, cost }))
}

/// Checks one expression.
pub(super) struct Checker<'a> {
    pub(super) environment: &'a Environment,
    pub(super) bindings: Bindings,
    /// The variables of macros, the innermost one last.
    pub(super) scope: Vec<(String, Type)>,
    pub(super) faults: Vec<Fault>,
    /// What the literals are made of, checked at the end.
    pub(super) aggregates: Vec<Homogeneous>,
    /// Arguments that can have no meaning.
    pub(super) arguments: Vec<Fault>,
    /// Literal arguments that are checked at the end, by position.
    pub(super) texts: HashMap<usize, Argument>,
    /// The positions of these arguments, in the order of the calls.
    pub(super) places: Vec<usize>,
    /// How many calls of `format` are around; their lists may be mixed.
    pub(super) exempt: usize,
    pub(super) visits: usize,
    /// The collected types of the parts, for cost estimates; `None` otherwise.
    pub(super) facts: Option<Facts>,
    /// The most parts to visit; a larger expression is not checked.
    ///
    /// `optMap` copies its target, so each further one in a chain doubles the expression.
    pub(super) most_visits: usize,
}

impl Checker<'_> {
    /// Returns whether the check was given up.
    fn is_spent(&self) -> bool {
        self.visits > self.most_visits || self.bindings.is_spent()
    }

    pub(super) fn report(&mut self, at: usize, message: String) -> Type {
        self.faults.push(Fault { at, message });
        Type::Error
    }

    pub(super) fn undeclared(&mut self, at: usize, name: &str) -> Type {
        let message = format!("undeclared reference to '{name}' (in container '')");
        self.report(at, message)
    }

    pub(super) fn mismatch(&mut self, at: usize, expected: &Type, found: &Type) -> Type {
        let (expected, found) = (expected.shown(), found.shown());
        self.report(
            at,
            format!("expected type '{expected}' but found '{found}'"),
        )
    }

    pub(super) fn resolve(&self, kind: &Type) -> Type {
        self.bindings.resolve(kind, false)
    }

    pub(super) fn visit(&mut self, tree: &Tree) -> Type {
        self.visits += 1;
        if self.visits > self.most_visits {
            return Type::Dyn;
        }
        let kind = match &tree.kind {
            Kind::Literal(literal) => match literal {
                Literal::Null => Type::Null,
                Literal::Bool => Type::Bool,
                Literal::Int(_) => Type::Int,
                Literal::Uint => Type::Uint,
                Literal::Double => Type::Double,
                Literal::Text(_) => Type::Text,
                Literal::Bytes(_) => Type::Bytes,
            },
            Kind::Name(name) => match self.find(name) {
                Some(kind) => kind,
                None => self.undeclared(tree.at, name),
            },
            Kind::Select(select) => self.visit_select(tree, select),
            Kind::Call(call) => self.visit_call(tree.at, call),
            Kind::List(items) => self.visit_list(items),
            Kind::Map(entries) => self.visit_map(entries),
            Kind::Struct(name, settings) => self.visit_struct(tree.at, name, settings),
            Kind::Loop(each) => self.visit_loop(each),
        };
        let kind = self.limited(kind);
        if let Some(facts) = &mut self.facts {
            facts.set_type(tree, kind.clone());
        }
        kind
    }

    pub(super) fn local(&self, name: &str) -> Option<&Type> {
        let mut scope = self.scope.iter().rev();
        scope.find(|(each, _)| each == name).map(|(_, kind)| kind)
    }

    pub(super) fn find(&self, name: &str) -> Option<Type> {
        let local = self.local(name).cloned();
        local.or_else(|| self.environment.find(name))
    }

    pub(super) fn visit_select(&mut self, tree: &Tree, select: &Select) -> Type {
        // A name with dots may be that of one variable.
        if let Some(name) = tree.qualified() {
            let first = name.split('.').next().unwrap_or_default();
            if self.local(first).is_none()
                && let Some(kind) = self.environment.find(&name)
            {
                if let Some(facts) = &mut self.facts {
                    facts.set_variable(tree, name);
                }
                return kind;
            }
        }
        let operand = self.visit(&select.operand);
        let operand = self.resolve(&operand);
        let (target, optional) = match operand.unwrapped() {
            Some(target) => (target.clone(), true),
            None => (operand, select.mode == SelectMode::Optional),
        };
        let found = self.field(tree.at, &target, &select.field);
        let found = if optional {
            Type::optional(found)
        } else {
            found
        };
        match select.mode {
            SelectMode::Test => Type::Bool,
            _ => self.resolve(&found),
        }
    }

    pub(super) fn field(&mut self, at: usize, target: &Type, name: &str) -> Type {
        match target {
            Type::Map(parts) => parts.1.clone(),
            Type::Object(object) => match object.field(name) {
                Field::Of(kind) => kind.clone(),
                Field::Undefined => self.report(at, format!("undefined field '{name}'")),
                Field::Unresolved => {
                    let kind = object.name();
                    self.report(at, format!("unexpected failed resolution of '{kind}'"))
                }
            },
            Type::Variable(_) => {
                self.bindings.fits(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error | Type::Unset => Type::Dyn,
            other => {
                let kind = other.shown();
                self.report(
                    at,
                    format!("type '{kind}' does not support field selection"),
                );
                Type::Dyn
            }
        }
    }

    pub(super) fn assert(&mut self, at: usize, expected: &Type, found: &Type) {
        if !self.bindings.fits(expected, found) {
            self.mismatch(at, expected, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_alone(text: &str) -> Result<Option<Type>, String> {
        check(text, &Environment::default())
    }

    #[test]
    fn an_expression_that_is_given_up_is_not_refused() {
        let text = format!(
            "[{{'a':{{'a':{{'a':{{'a':{{'a':1}}}}}}}}}}].map(x, [{}]).size() > 0",
            vec!["x"; 48_000].join(", ")
        );
        assert!(matches!(check_alone(&text), Ok(None | Some(Type::Bool))));
        let chain = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(30));
        assert_eq!(check_alone(&chain), Ok(None));
    }

    #[test]
    fn a_large_regular_expression_is_valid() {
        assert_eq!(
            check_alone(r"'a'.matches('^[\\p{L}\\p{N}_-]{1,1000}$')"),
            Ok(Some(Type::Bool))
        );
        let error = check_alone("'a'.matches('(')").unwrap_err();
        assert!(error.contains("invalid matches argument"), "{error}");
    }
}
