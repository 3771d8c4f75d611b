//! The variables of policies, whose types other expressions see.

use std::sync::Arc;

use super::conditions::Expression;
use crate::expressions::{Object, Type, is_reserved};
use crate::validation::causes::Causes;
use crate::validation::field::Field;

/// Checks the variables of a policy; returns the type of `variables`.
///
/// Each one may use those before it.
pub(super) fn check_variables(spec: &Field<'_>, rule: Expression<'_>, causes: &mut Causes) -> Type {
    let mut known = Arc::new(Object::new("kubernetes.variables", []));
    for variable in spec.get("variables").items() {
        let name = variable.get("name");
        if name.text().trim().is_empty() {
            causes.required(&name, "name is not specified");
        } else if !is_identifier(name.text()) {
            causes.invalid(&name, "must be a valid CEL identifier");
        }
        let before = Type::Object(Arc::clone(&known));
        let rule = Expression {
            variables: Some(&before),
            ..rule
        };
        let expression = variable.get("expression");
        let found = rule.check(&expression, "expression is not specified", causes);
        let found = found.map_or(Type::Dyn, |found| seen(&found));
        // The type is not shared any more, so it is not copied.
        drop(before);
        Arc::make_mut(&mut known).declare(name.text(), found);
    }
    Type::Object(known)
}

/// Returns the type that other expressions see of a variable.
// `convertCelTypeToDeclType`: of all but plain values, lists and maps nothing is known.
fn seen(kind: &Type) -> Type {
    match kind {
        Type::List(element) => Type::list(seen(element)),
        Type::Map(parts) => Type::map(seen(&parts.0), seen(&parts.1)),
        Type::Optional(_) | Type::Meta(_) | Type::Opaque(_) | Type::Object(_) => Type::Dyn,
        plain => plain.clone(),
    }
}

fn is_identifier(name: &str) -> bool {
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    // `isCELIdentifier`. An empty name was reported before.
    name.bytes().all(is_part)
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !is_reserved(name)
}
