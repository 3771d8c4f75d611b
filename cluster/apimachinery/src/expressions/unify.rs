//! Which type may stand for which one, and what variables of types stand for.
//!
//! Source: `checker/types.go`.

use std::cell::Cell;

use super::types::Type;

/// The most comparisons of types; the size of nested map types is exponential.
const MOST_STEPS: usize = 1_000_000;

/// The result of a try to bind a variable to a type.
struct Substitution {
    /// The variable may stand for the type.
    is_consistent: bool,
    /// The variable stood for a type before.
    was_bound: bool,
}

/// What the variables of types stand for.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    /// By the number of the variable.
    bound: Vec<Option<Type>>,
    /// What was bound before each change, so that a try can be undone.
    before: Vec<(usize, Option<Type>)>,
    steps: Cell<usize>,
}

impl Bindings {
    /// Returns whether there was too much work, so that nothing is known.
    pub(super) fn is_spent(&self) -> bool {
        self.steps.get() > MOST_STEPS
    }

    fn spend(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.is_spent()
    }

    /// Returns a new variable.
    pub(super) fn variable(&mut self) -> Type {
        self.bound.push(None);
        Type::Variable(self.bound.len() - 1)
    }

    /// Unifies two types, and binds their variables; returns whether they unify.
    pub(super) fn fits(&mut self, first: &Type, second: &Type) -> bool {
        self.all_fit(&[(first, second)])
    }

    /// As [`fits`](Self::fits) for pairs of types, all of which must fit.
    pub(super) fn all_fit(&mut self, pairs: &[(&Type, &Type)]) -> bool {
        self.before.clear();
        if pairs
            .iter()
            .all(|(first, second)| self.assign(first, second))
        {
            return true;
        }
        while let Some((number, before)) = self.before.pop() {
            self.bound[number] = before;
        }
        false
    }

    /// Replaces variables by what they stand for, and with `whole` all others by `dyn`.
    pub(super) fn resolve(&self, kind: &Type, whole: bool) -> Type {
        if self.spend() {
            return Type::Dyn;
        }
        match (kind, self.find(kind)) {
            (_, Some(bound)) => self.resolve(bound, whole),
            (Type::Variable(_), None) if whole => Type::Dyn,
            _ => kind.with_parts(|part| self.resolve(part, whole)),
        }
    }

    fn find(&self, kind: &Type) -> Option<&Type> {
        match kind {
            Type::Variable(number) => self.bound[*number].as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, number: usize, kind: Type) {
        let before = self.bound[number].replace(kind);
        self.before.push((number, before));
    }

    // `internalIsAssignable`.
    fn assign(&mut self, first: &Type, second: &Type) -> bool {
        if self.spend() {
            return true;
        }
        if let Type::Variable(number) = second {
            let found = self.substitute(first, *number);
            if found.is_consistent || found.was_bound {
                return found.is_consistent;
            }
        }
        if let Type::Variable(number) = first {
            return self.substitute(second, *number).is_consistent;
        }
        let is_open = |kind: &Type| kind.is_dyn() || *kind == Type::Error;
        if is_open(first) || is_open(second) {
            return true;
        }
        match (first, second) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(_), Type::List(_))
            | (Type::Map(_), Type::Map(_))
            | (Type::Optional(_), Type::Optional(_)) => {
                let mut pairs = first.parts().into_iter().zip(second.parts());
                pairs.all(|(first, second)| self.assign(first, second))
            }
            _ => first == second,
        }
    }

    /// Binds a variable to a type, unless it has another one.
    // `isValidTypeSubstitution`.
    fn substitute(&mut self, kind: &Type, number: usize) -> Substitution {
        let bound = |is_consistent| Substitution {
            is_consistent,
            was_bound: true,
        };
        let unbound = |is_consistent| Substitution {
            is_consistent,
            was_bound: false,
        };
        let variable = Type::Variable(number);
        if *kind == variable {
            return bound(true);
        }
        if let Some(before) = self.bound[number].clone() {
            if *kind == before {
                return bound(true);
            }
            if !self.assign(kind, &before) {
                return bound(false);
            }
            let general = most_general(kind, &before).clone();
            if self.is_free_of(&general, number) {
                self.bind(number, general);
            }
            return bound(true);
        }
        if self.is_free_of(kind, number) {
            self.bind(number, kind.clone());
            return unbound(true);
        }
        unbound(false)
    }

    /// Returns whether a variable is not inside of a type, since no type contains itself.
    fn is_free_of(&self, kind: &Type, number: usize) -> bool {
        if self.spend() {
            return true;
        }
        if *kind == Type::Variable(number) {
            return false;
        }
        let bound = self.find(kind);
        bound.is_none_or(|bound| self.is_free_of(bound, number))
            && kind
                .parts()
                .iter()
                .all(|part| self.is_free_of(part, number))
    }
}

fn is_nullable(kind: &Type) -> bool {
    matches!(
        kind,
        Type::Null
            | Type::Optional(_)
            | Type::Opaque(_)
            | Type::Object(_)
            | Type::Duration
            | Type::Timestamp
    )
}

/// Returns the more general one of two types.
pub(super) fn most_general<'a>(first: &'a Type, second: &'a Type) -> &'a Type {
    if is_less_specific(first, second) {
        first
    } else {
        second
    }
}

fn is_less_specific(first: &Type, second: &Type) -> bool {
    let is_open = |kind: &Type| kind.is_dyn() || matches!(kind, Type::Variable(_));
    if is_open(first) {
        return true;
    }
    match (first, second) {
        (_, second) if is_open(second) => false,
        (Type::Meta(_), Type::Meta(_)) => true,
        (Type::List(_), Type::List(_))
        | (Type::Map(_), Type::Map(_))
        | (Type::Optional(_), Type::Optional(_)) => {
            let mut pairs = first.parts().into_iter().zip(second.parts());
            pairs.all(|(first, second)| is_less_specific(first, second))
        }
        _ => first == second,
    }
}
