//! Expressions in CEL about a request.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

use super::attributes::{Attributes, ResourceName};
use crate::object::Object;
use crate::structural::{compile, describe, run, to_cel};
use lariat_core::Gvk;

/// An expression, compiled.
#[derive(Debug)]
pub struct Expression {
    text: String,
    program: Result<Program, String>,
}

impl Expression {
    /// Compiles an expression; what is wrong with it shows when it is evaluated.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            program: compile(text),
        }
    }

    /// Returns the expression as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Evaluates the expression as JSON.
    ///
    /// # Errors
    ///
    /// The API server's sentence about it.
    pub fn evaluate(&self, scope: &Scope) -> Result<Value, String> {
        let value = self.cel(scope)?;
        json(&value).ok_or_else(|| self.failed(&"the value has no JSON"))
    }

    /// Returns whether the expression is the boolean true.
    ///
    /// # Errors
    ///
    /// The API server's sentence about it.
    pub fn holds(&self, scope: &Scope) -> Result<bool, String> {
        Ok(matches!(self.cel(scope)?, Cel::Bool(true)))
    }

    pub(super) fn cel(&self, scope: &Scope) -> Result<Cel, String> {
        let program = self.program.as_ref();
        let program = program.map_err(|error| format!("compilation error: {error}"))?;
        run(program, &scope.context).map_err(|error| self.failed(&describe(error)))
    }

    fn failed(&self, error: &dyn fmt::Display) -> String {
        format!("expression '{}' resulted in error: {error}", self.text)
    }
}

/// Returns a value as JSON, if it has that form.
fn json(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => (*flag).into(),
        Cel::Int(number) => (*number).into(),
        Cel::UInt(number) => (*number).into(),
        Cel::Float(number) => (*number).into(),
        Cel::String(text) => text.as_str().into(),
        Cel::Bytes(bytes) => STANDARD.encode(bytes.as_slice()).into(),
        Cel::List(items) => Value::Array(items.iter().map(json).collect::<Option<_>>()?),
        Cel::Map(map) => {
            let members = map.map.iter().map(|(key, value)| {
                let Key::String(key) = key else {
                    return None;
                };
                Some((key.as_str().to_owned(), json(value)?))
            });
            Value::Object(members.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// What the expressions about one request may name.
///
/// These are `object`, `oldObject` and `request`, and what is added.
pub struct Scope {
    context: Context<'static>,
    variables: HashMap<Key, Cel>,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl Scope {
    /// Makes the scope of a request, which sees its objects as `kind` of `resource`.
    #[must_use]
    pub fn new(
        attributes: &Attributes,
        (resource, kind): (&ResourceName, &Gvk),
        object: Option<&Object>,
        old: Option<&Object>,
    ) -> Self {
        let mut scope = Self {
            context: Context::default().with_all(),
            variables: HashMap::new(),
        };
        let whole = |object: Option<&Object>| object.cloned().map_or(Value::Null, Value::Object);
        scope.add("object", &whole(object));
        scope.add("oldObject", &whole(old));
        scope.add("request", &attributes.json(resource, kind));
        scope
    }

    /// Adds a value under a name.
    pub fn add(&mut self, name: &str, value: &Value) {
        let value = to_cel(value, None, &self.context);
        self.context.add_variable_from_value(name, value);
    }

    /// Adds a member of `variables`, if it can be evaluated.
    ///
    /// An expression that uses one that cannot fails.
    pub fn add_variable(&mut self, name: &str, expression: &Expression) {
        if let Ok(value) = expression.cel(self) {
            self.variables
                .insert(Key::String(Arc::new(name.to_owned())), value);
        }
        let map = Arc::new(self.variables.clone());
        self.context
            .add_variable_from_value("variables", Cel::Map(Map { map }));
    }
}
