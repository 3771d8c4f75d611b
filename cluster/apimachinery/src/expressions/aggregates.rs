//! The types of lists, maps and structs.

use std::collections::HashMap;

use super::check::Checker;
use super::literals::Homogeneous;
use super::tree::{Entry, Setting, Tree};
use super::types::Type;
use super::unify::most_general;

/// The most types in one type; an expression with a larger type is not checked.
///
/// A list of maps of maps grows by a factor of two with each level.
const MOST_PARTS: usize = 1000;

impl Checker<'_> {
    /// Returns the value's type of an optional element or entry.
    pub(super) fn unwrap_optional(&mut self, at: usize, kind: Type) -> Type {
        match kind.unwrapped() {
            Some(value) => value.clone(),
            None => {
                if !kind.is_dyn() {
                    self.mismatch(at, &Type::optional(kind.clone()), &kind);
                }
                kind
            }
        }
    }

    fn join(&mut self, before: Option<Type>, kind: Type) -> Option<Type> {
        let Some(before) = before else {
            return Some(kind);
        };
        Some(if self.bindings.fits(&before, &kind) {
            most_general(&before, &kind).clone()
        } else {
            // Reported at the end, unless the values are those of a text that is formatted.
            Type::Dyn
        })
    }

    pub(super) fn visit_list(&mut self, items: &[(bool, Tree)]) -> Type {
        let (mut joined, mut parts) = (None, Vec::new());
        for (optional, item) in items {
            let mut kind = self.visit(item);
            if *optional {
                kind = self.unwrap_optional(item.at, kind);
            }
            parts.push((item.at, kind.clone()));
            joined = self.join(joined, kind);
        }
        self.remember(parts, true);
        let element = joined.unwrap_or_else(|| self.bindings.variable());
        Type::list(element)
    }

    pub(super) fn visit_map(&mut self, entries: &[Entry]) -> Type {
        let (mut key, mut value) = (None, None);
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for entry in entries {
            let found = self.visit(&entry.key);
            keys.push((entry.key.at, found.clone()));
            key = self.join(key, found);
            let mut found = self.visit(&entry.value);
            if entry.optional {
                found = self.unwrap_optional(entry.value.at, found);
            }
            values.push((entry.value.at, found.clone()));
            value = self.join(value, found);
        }
        self.remember(keys, false);
        self.remember(values, false);
        let key = key.unwrap_or_else(|| self.bindings.variable());
        let value = value.unwrap_or_else(|| self.bindings.variable());
        Type::map(key, value)
    }

    /// Gives up on a type that is too large.
    pub(super) fn limited(&mut self, kind: Type) -> Type {
        if kind.has_more_than(MOST_PARTS) {
            self.visits = self.most_visits + 1;
            return Type::Dyn;
        }
        kind
    }

    fn remember(&mut self, parts: Vec<(usize, Type)>, once: bool) {
        if parts.len() > 1 && self.exempt == 0 {
            self.aggregates.push(Homogeneous { parts, once });
        }
    }

    pub(super) fn visit_struct(&mut self, at: usize, name: &str, settings: &[Setting]) -> Type {
        let kind = match self.environment.made(name) {
            Some(kind) => kind,
            None if self.environment.find(name).is_some() => Type::Dyn,
            None => return self.undeclared(at, name),
        };
        for setting in settings {
            let mut value = self.visit(&setting.value);
            let field = self.field(setting.at, &kind, &setting.field);
            if setting.optional {
                value = self.unwrap_optional(setting.value.at, value);
            }
            if !self.bindings.fits(&field, &value) {
                let (field, value) = (field.shown(), value.shown());
                let message = format!(
                    "expected type of field '{}' is '{field}' but provided type is '{value}'",
                    setting.field
                );
                self.report(setting.at, message);
            }
        }
        kind
    }

    /// Reports literals that have no meaning, and lists and maps of mixed types.
    pub(super) fn check_literals(&mut self) {
        self.faults.append(&mut self.arguments);
        let texts = std::mem::take(&mut self.texts).into_iter();
        let faults: HashMap<usize, Option<String>> =
            texts.map(|(at, argument)| (at, argument.fault())).collect();
        for at in std::mem::take(&mut self.places) {
            if let Some(Some(message)) = faults.get(&at) {
                self.report(at, message.clone());
            }
        }
        for Homogeneous { parts, once } in std::mem::take(&mut self.aggregates) {
            let mut kinds = parts
                .iter()
                .map(|(at, kind)| (*at, self.bindings.resolve(kind, true)));
            let Some((_, first)) = kinds.next() else {
                continue;
            };
            let differing: Vec<_> = kinds.filter(|(_, kind)| *kind != first).collect();
            let most = if once { 1 } else { differing.len() };
            for (at, kind) in differing.iter().take(most) {
                self.mismatch(*at, &first, kind);
            }
        }
    }
}
