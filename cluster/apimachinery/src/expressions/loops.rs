//! The types of macros over lists and maps.

use super::check::Checker;
use super::tree::{Loop, Tree};
use super::types::Type;

impl Checker<'_> {
    pub(super) fn visit_loop(&mut self, each: &Loop) -> Type {
        let range = self.visit(&each.range);
        let begin = self.visit(&each.begin);
        let outer = self.scope.len();
        self.scope.push((each.result_name.clone(), begin.clone()));
        let kinds = self.elements(&each.range, &range);
        let indexed = each.variables.len() > 1;
        for (name, kind) in each.variables.iter().zip(kinds.of(indexed)) {
            self.scope.push((name.clone(), kind));
        }
        let condition = self.visit(&each.condition);
        self.assert(each.condition.at, &Type::Bool, &condition);
        let step = self.visit(&each.step);
        self.assert(each.step.at, &begin, &step);
        self.scope.truncate(outer + 1);
        let result = self.visit(&each.result);
        self.scope.truncate(outer);
        self.resolve(&result)
    }

    /// Returns what a loop over a range sees.
    fn elements(&mut self, range: &Tree, kind: &Type) -> Elements {
        let kind = self.resolve(kind);
        let same = |kind: Type| Elements {
            key: kind.clone(),
            value: kind.clone(),
            only: kind,
        };
        match &kind {
            Type::List(element) => Elements {
                key: Type::Int,
                value: Type::clone(element),
                only: Type::clone(element),
            },
            Type::Map(parts) => Elements {
                key: parts.0.clone(),
                value: parts.1.clone(),
                only: parts.0.clone(),
            },
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.bindings.fits(&Type::Dyn, &kind);
                same(Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    other.shown()
                );
                same(self.report(range.at, message))
            }
        }
    }
}

/// What a loop sees of its range.
struct Elements {
    /// With one variable.
    only: Type,
    /// With two variables.
    key: Type,
    value: Type,
}

impl Elements {
    fn of(self, indexed: bool) -> Vec<Type> {
        if indexed {
            vec![self.key, self.value]
        } else {
            vec![self.only]
        }
    }
}
