//! The types of calls.

use super::check::Checker;
use super::facts::Called;
use super::functions::{self, Signature};
use super::literals::{Argument, invalid_argument, is_number_as_duration, wrong_count};
use super::source::Fault;
use super::tree::Call;
use super::types::Type;

/// A function that is called.
struct Function<'a> {
    name: &'a str,
    signatures: &'static [Signature],
    /// Whether the first argument is the target.
    is_method: bool,
    call: &'a Call,
}

impl<'a> Function<'a> {
    fn of(name: &'a str, signatures: &'static [Signature], call: &'a Call) -> Self {
        Self {
            name,
            signatures,
            is_method: false,
            call,
        }
    }

    fn method(signatures: &'static [Signature], call: &'a Call) -> Self {
        Self {
            is_method: true,
            ..Self::of(&call.name, signatures, call)
        }
    }

    /// Returns what is known of the call.
    fn called(&self, signatures: Vec<&'static Signature>) -> Called {
        let has_other_name = self.name != self.call.name;
        Called {
            qualified: has_other_name.then(|| self.name.to_owned()),
            signatures,
        }
    }
}

impl Checker<'_> {
    pub(super) fn visit_call(&mut self, at: usize, call: &Call) -> Type {
        let is_format = call.name == "format";
        self.exempt += usize::from(is_format);
        let mut arguments: Vec<Type> = Vec::new();
        for argument in &call.arguments {
            arguments.push(self.visit(argument));
        }
        let called = self.visit_callee(at, call, &mut arguments);
        self.exempt -= usize::from(is_format);
        if is_number_as_duration(&call.name, &call.arguments) {
            let message = invalid_argument(&call.name);
            let at = call.arguments[0].at;
            self.arguments.push(Fault { at, message });
        }
        self.read_later(call);
        if let Some(message) = wrong_count(call) {
            self.arguments.push(Fault { at, message });
        }
        called
    }

    /// Remembers an argument that is read at the end; a macro leads here several times.
    fn read_later(&mut self, call: &Call) {
        if let (Some(first), Some(argument)) = (
            call.arguments.first(),
            Argument::of(&call.name, &call.arguments),
        ) {
            self.texts.entry(first.at).or_insert(argument);
            self.places.push(first.at);
        }
    }

    /// Finds the function of a call, and returns the type of its result.
    fn visit_callee(&mut self, at: usize, call: &Call, arguments: &mut Vec<Type>) -> Type {
        let environment = self.environment;
        let find = |name: &str| {
            let name = name.strip_prefix('.').unwrap_or(name);
            // Only expressions that make patches have the functions for them.
            let exists = environment.patches || !name.starts_with("jsonpatch.");
            functions::find(name).filter(|_| exists)
        };
        let Some(target) = &call.target else {
            return match find(&call.name) {
                Some(signatures) => {
                    let function = Function::of(&call.name, signatures, call);
                    if matches!(call.name.as_str(), "_&&_" | "_||_") {
                        self.logic(&function, arguments)
                    } else {
                        self.overload(at, &function, arguments)
                    }
                }
                None => self.undeclared(at, &call.name),
            };
        };
        // `sets.contains(…)` is a function whose name has a dot.
        if let Some(name) = target.qualified() {
            let name = format!("{name}.{}", call.name);
            if let Some(signatures) = find(&name) {
                return self.overload(at, &Function::of(&name, signatures, call), arguments);
            }
        }
        let signatures = find(&call.name);
        let target = self.visit(target);
        arguments.insert(0, target);
        match signatures {
            Some(signatures) => self.overload(at, &Function::method(signatures, call), arguments),
            None => self.undeclared(at, &call.name),
        }
    }

    fn logic(&mut self, function: &Function<'_>, kinds: &[Type]) -> Type {
        self.note(function, function.signatures.iter().collect());
        let mut result = Type::Bool;
        for (term, kind) in function.call.arguments.iter().zip(kinds) {
            if !self.bindings.fits(kind, &Type::Bool) {
                result = self.mismatch(term.at, &Type::Bool, kind);
            }
        }
        result
    }

    fn overload(&mut self, at: usize, function: &Function<'_>, arguments: &[Type]) -> Type {
        let is_method = function.is_method;
        let (mut result, mut fitting) = (None::<Type>, Vec::new());
        for signature in function.signatures {
            if signature.is_method != is_method {
                continue;
            }
            let Some(found) = self.try_signature(signature, arguments) else {
                continue;
            };
            fitting.push(signature);
            result = Some(match result {
                // Which signature is meant is only known when the expression is evaluated.
                Some(first) if !first.is_dyn() && found != first => Type::Dyn,
                Some(first) => first,
                None => found,
            });
        }
        self.note(function, fitting);
        result.unwrap_or_else(|| {
            let shown = |kind: &Type| self.bindings.resolve(kind, true).shown();
            let shown: Vec<String> = arguments.iter().map(shown).collect();
            let applied = match shown.split_first() {
                Some((target, rest)) if is_method => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            let name = function.name.strip_prefix('.').unwrap_or(function.name);
            let message = format!("found no matching overload for '{name}' applied to '{applied}'");
            self.report(at, message)
        })
    }

    fn note(&mut self, function: &Function<'_>, signatures: Vec<&'static Signature>) {
        if let Some(facts) = &mut self.facts {
            facts.set_called(function.call, function.called(signatures));
        }
    }

    fn try_signature(&mut self, signature: &Signature, arguments: &[Type]) -> Option<Type> {
        let parameters = signature.parameters.iter();
        let fresh: Vec<(u8, Type)> = parameters
            .map(|letter| (*letter, self.bindings.variable()))
            .collect();
        if signature.arguments.len() != arguments.len() {
            return None;
        }
        let wanted = signature.arguments.iter();
        let wanted: Vec<Type> = wanted.map(|kind| instance(kind, &fresh)).collect();
        let pairs: Vec<_> = arguments.iter().zip(&wanted).collect();
        let fits = self.bindings.all_fit(&pairs);
        fits.then(|| self.resolve(&instance(&signature.result, &fresh)))
    }
}

/// Replaces the parameters of a signature by variables.
fn instance(kind: &Type, variables: &[(u8, Type)]) -> Type {
    match kind {
        Type::Parameter(letter) => {
            let mut variables = variables.iter();
            let found = variables.find(|(each, _)| each == letter);
            found.map_or(Type::Dyn, |(_, variable)| variable.clone())
        }
        kind => kind.with_parts(|part| instance(part, variables)),
    }
}
