//! The attributes of a request that its authorization depends on.

use lariat_apimachinery::kinds::qualified;

use crate::status::ApiError;
use crate::wire::route::Target;

/// The attributes of a request that authorization decides by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// A Kubernetes verb, or an HTTP method in lower case for other paths.
    pub(crate) verb: String,
    pub(crate) subject: Subject,
}

/// The path or the resource that the request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Path(String),
    Resource(Target),
}

/// The decision of the authorizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is, for a reason that may be empty.
    Allowed(String),
    /// Nothing allows it; the reason is empty unless something could not be looked up.
    NoOpinion(String),
}

impl Default for Subject {
    fn default() -> Self {
        Self::Path(String::new())
    }
}

impl Attributes {
    /// Returns the forbidden action, as errors word it.
    ///
    /// Source: `forbiddenMessage` in `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`.
    fn forbidden_message(&self, user: &str) -> String {
        let verb = &self.verb;
        let target = match &self.subject {
            Subject::Path(path) => return format!("User {user:?} cannot {verb} path {path:?}"),
            Subject::Resource(target) => target,
        };
        let resource = match &target.subresource {
            Some(subresource) => format!("{}/{subresource}", target.plural),
            None => target.plural.clone(),
        };
        let scope = match target.namespace.as_deref() {
            Some(namespace) => format!("in the namespace {namespace:?}"),
            None => "at the cluster scope".to_owned(),
        };
        let group = &target.group;
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}")
    }

    /// Returns the error for a user without the permission.
    pub(crate) fn denied(&self, user: &str, why: &str) -> ApiError {
        let mut reason = self.forbidden_message(user);
        if !why.is_empty() {
            reason = format!("{reason}: {why}");
        }
        let message = match self.about() {
            Some(about) => format!("{about} is forbidden: {reason}"),
            None => format!("forbidden: {reason}"),
        };
        let error = ApiError::denied(message);
        match &self.subject {
            Subject::Path(_) => error.about("", "", ""),
            Subject::Resource(target) => {
                let name = target.name.as_deref().unwrap_or_default();
                error.about(&target.plural, &target.group, name)
            }
        }
    }

    /// Returns the object the request is about, as errors name it.
    fn about(&self) -> Option<String> {
        let Subject::Resource(target) = &self.subject else {
            return None;
        };
        let resource = qualified(&target.plural, &target.group);
        Some(match &target.name {
            Some(name) => format!("{resource} {name:?}"),
            None => resource,
        })
    }
}
