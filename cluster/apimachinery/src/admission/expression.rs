//! Expressions in CEL about a request.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Value as Cel};
use serde_json::Value;

use super::attributes::{Attributes, ResourceName};
use super::authorizer::{self, Authorize};
use super::structs;
use crate::object::Object;
use crate::structural::{self, Program, compile, describe, run, to_cel};
use lariat_core::Gvk;

/// A compiled CEL expression.
///
/// ```
/// use lariat_apimachinery::admission::{Attributes, Expression, Operation, ResourceName, Scope};
/// use lariat_core::Gvk;
/// use serde_json::{Value, json};
///
/// let resource = ResourceName { group: "apps".into(), version: "v1".into(), plural: "deployments".into() };
/// let kind = Gvk::new("apps", "v1", "Deployment");
/// let attributes = Attributes {
///     operation: Operation::Update,
///     resource: resource.clone(),
///     subresource: String::new(),
///     kind: kind.clone(),
///     namespace: "shop".into(),
///     name: "web".into(),
///     options: Value::Null,
///     dry_run: false,
///     user: json!({"username": "ann"}),
/// };
/// let object = json!({"spec": {"replicas": 7}});
/// let scope = Scope::new(&attributes, (&resource, &kind), object.as_object(), None);
/// let text = "object.spec.replicas > 5 && request.userInfo.username == 'ann'";
/// assert_eq!(Expression::new(text).holds(&scope), Ok(true));
/// ```
#[derive(Debug)]
pub struct Expression {
    text: String,
    program: Result<Program, String>,
}

impl Expression {
    /// Compiles an expression; a syntax error is returned by the evaluation.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            // The rewritten text is compiled and the written one is shown, since messages quote what the user wrote.
            program: compile(&structs::interpreted(text)),
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
        run(program, &scope.context).map_err(|error| {
            let error = describe(error);
            // A failed variable is missing from `variables`. Go fails with the reason why it could not be evaluated,
            // so the missing key is replaced by that.
            let variable = error.strip_prefix("no such key: ");
            let variable = variable.and_then(|name| Some((name, scope.failed.get(name)?)));
            match variable {
                Some((name, reason)) => self.failed(&format!(
                    "composited variable {name:?} fails to evaluate: {reason}"
                )),
                None => self.failed(&error),
            }
        })
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
                // JSON has no other keys.
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

/// The variables that expressions about one request may use.
///
/// `object`, `oldObject` and `request` are always defined; others can be [added](Self::add).
pub struct Scope {
    context: Context<'static>,
    /// The variables that cannot be evaluated, with the reason.
    failed: HashMap<String, String>,
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl Scope {
    /// Creates the scope of a request.
    ///
    /// The objects, `kind` and `resource` must have the version that matched, and `request` must name it.
    #[must_use]
    pub fn new(
        attributes: &Attributes,
        (resource, kind): (&ResourceName, &Gvk),
        object: Option<&Object>,
        old: Option<&Object>,
    ) -> Self {
        let mut scope = Self {
            context: structural::context(),
            failed: HashMap::new(),
        };
        let whole = |object: Option<&Object>| object.cloned().map_or(Value::Null, Value::Object);
        scope.add("object", &whole(object));
        scope.add("oldObject", &whole(old));
        scope.add("request", &attributes.json(resource, kind));
        scope
    }

    /// Adds a value under a name.
    pub fn add(&mut self, name: &str, value: &Value) {
        // No schema is given: fields are then reached by their plain names, without the escaping of CRD rules.
        let value = to_cel(value, None, &self.context);
        self.context.add_variable_from_value(name, value);
    }

    /// Adds `authorizer` and `authorizer.requestResource`: authorization checks.
    pub fn add_authorizer(&mut self, attributes: &Attributes, authorize: &Authorize) {
        authorizer::add(&mut self.context, attributes, authorize);
    }

    /// Adds `variables`, each of which may use those before it.
    ///
    /// A variable that cannot be evaluated is left out; expressions that use it fail.
    pub(super) fn add_variables(&mut self, variables: &[(String, Expression)]) {
        let mut known: HashMap<Key, Cel> = HashMap::new();
        // One round more than there are variables, so that the last one is added too.
        for at in 0..=variables.len() {
            let map = Arc::new(known.clone());
            self.context
                .add_variable_from_value("variables", Cel::Map(Map { map }));
            let Some((name, expression)) = variables.get(at) else {
                return;
            };
            match expression.cel(self) {
                Ok(value) => {
                    known.insert(Key::String(Arc::new(name.clone())), value);
                }
                Err(error) => {
                    // The expression that uses the variable puts its own beginning in front again.
                    let reason = error.split_once("resulted in error: ");
                    let reason = reason.map_or(error.as_str(), |(_, reason)| reason);
                    self.failed.insert(name.clone(), reason.to_owned());
                }
            }
        }
    }
}
