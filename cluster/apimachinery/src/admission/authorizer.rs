//! `authorizer` in expressions: what the user of a request may do.
//!
//! Source: `k8s.io/apiserver/pkg/cel/library/authz.go`.

use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::Opaque;
use kube_cel::cel::{Context, ExecutionError, Value as Cel};

use super::attributes::Attributes;
use super::structs::REQUEST_RESOURCE;

/// An authorization check of an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// A path that is no resource; empty for resources.
    pub path: String,
    /// The group of the resource.
    pub group: String,
    /// The name of the resource in URLs.
    pub plural: String,
    /// The subresource, often empty.
    pub subresource: String,
    /// The namespace, empty for all.
    pub namespace: String,
    /// The name of an object, empty for all.
    pub name: String,
    /// Namespace and name of a service account to authorize instead of the user.
    pub account: Option<(String, String)>,
    /// The Kubernetes verb, such as `get`.
    pub verb: String,
}

/// The decision about a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorized {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The reason, often empty.
    pub reason: String,
}

/// The authorizer: decides about a check.
pub type Authorize = Arc<dyn Fn(&Check) -> Authorized + Send + Sync>;

/// An authorizer, or a step on the way to a check.
#[derive(Debug, PartialEq, Eq)]
struct Asked(Check);

impl Opaque for Asked {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.authorization.Authorizer"
    }
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
struct Answered(Authorized);

impl Opaque for Answered {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.authorization.Decision"
    }
}

fn asked(check: Check) -> Cel {
    Cel::Opaque(Arc::new(Asked(check)))
}

fn no_overload() -> ExecutionError {
    ExecutionError::NoSuchOverload
}

/// Returns the check that a value has built so far.
// Each function gets a copy: an authorizer may be used for several checks, which must not change each other.
fn check_of(value: &Cel) -> Result<Check, ExecutionError> {
    let Cel::Opaque(opaque) = value else {
        return Err(no_overload());
    };
    let asked = opaque.downcast_ref::<Asked>();
    asked.map(|asked| asked.0.clone()).ok_or_else(no_overload)
}

fn decision_of(value: &Cel) -> Result<Authorized, ExecutionError> {
    let Cel::Opaque(opaque) = value else {
        return Err(no_overload());
    };
    let answered = opaque.downcast_ref::<Answered>();
    answered
        .map(|answered| answered.0.clone())
        .ok_or_else(no_overload)
}

/// Adds the variables and the functions.
pub(super) fn add(context: &mut Context<'static>, attributes: &Attributes, authorize: &Authorize) {
    // A default check has neither path nor resource; the setters below fill it in.
    context.add_variable_from_value("authorizer", asked(Check::default()));
    context.add_variable_from_value(
        REQUEST_RESOURCE,
        asked(Check {
            group: attributes.resource.group.clone(),
            plural: attributes.resource.plural.clone(),
            subresource: attributes.subresource.clone(),
            namespace: attributes.namespace.clone(),
            name: attributes.name.clone(),
            ..Check::default()
        }),
    );
    add_setter(context, "path", |check, text| check.path = text);
    add_setter(context, "group", |check, text| check.group = text);
    add_setter(context, "resource", |check, text| check.plural = text);
    add_setter(context, "subresource", |check, text| {
        check.subresource = text
    });
    add_setter(context, "namespace", |check, text| check.namespace = text);
    add_setter(context, "name", |check, text| check.name = text);
    context.add_function(
        "serviceAccount",
        |This(this): This<Cel>, namespace: Arc<String>, name: Arc<String>| {
            let mut check = check_of(&this)?;
            check.account = Some((namespace.to_string(), name.to_string()));
            Ok::<_, ExecutionError>(asked(check))
        },
    );
    let authorize = Arc::clone(authorize);
    context.add_function("check", move |This(this): This<Cel>, verb: Arc<String>| {
        let mut check = check_of(&this)?;
        check.verb = verb.to_string();
        let answer: Arc<dyn Opaque> = Arc::new(Answered(authorize(&check)));
        Ok::<_, ExecutionError>(Cel::Opaque(answer))
    });
    context.add_function("allowed", |This(this): This<Cel>| {
        Ok::<_, ExecutionError>(Cel::Bool(decision_of(&this)?.allowed))
    });
    context.add_function("reason", |This(this): This<Cel>| {
        let reason = decision_of(&this)?.reason;
        Ok::<_, ExecutionError>(Cel::String(Arc::new(reason)))
    });
    // The embedded authorizer decides from memory and never fails, so these two are there for expressions that ask.
    context.add_function("errored", |This(this): This<Cel>| {
        decision_of(&this)?;
        Ok::<_, ExecutionError>(Cel::Bool(false))
    });
    context.add_function("error", |This(this): This<Cel>| {
        decision_of(&this)?;
        Ok::<_, ExecutionError>(Cel::String(Arc::default()))
    });
}

fn add_setter(context: &mut Context<'static>, name: &str, set: fn(&mut Check, String)) {
    context.add_function(name, move |This(this): This<Cel>, text: Arc<String>| {
        let mut check = check_of(&this)?;
        set(&mut check, text.to_string());
        Ok::<_, ExecutionError>(asked(check))
    });
}
