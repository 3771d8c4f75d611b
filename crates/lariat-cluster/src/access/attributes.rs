//! What a request asks for, as far as permission goes.

use crate::api::arrival::Arrival;
use crate::api::query::Query;
use crate::api::route::{Route, Target};
use crate::kinds::qualified;
use crate::verbs::Verb;

/// What somebody wants to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// A Kubernetes verb, or a method of HTTP in lower case for paths below no resource.
    pub(crate) verb: String,
    pub(crate) subject: Subject,
}

/// With what they want to do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Path(String),
    Resource(Target),
}

impl Default for Subject {
    fn default() -> Self {
        Self::Path(String::new())
    }
}

impl Attributes {
    /// Returns what a request asks for.
    pub(crate) fn of(arrival: &Arrival) -> Self {
        let Route::Objects(target) = &arrival.route else {
            return Self {
                verb: arrival.method().as_str().to_lowercase(),
                subject: Subject::Path(arrival.path().to_owned()),
            };
        };
        let mut target = target.clone();
        let verb = arrival.verb().map(Verb::as_str);
        let verb = verb.or_else(|| verb_of(arrival.method().as_str(), target.name.is_some()));
        let selects = matches!(verb, Some("list" | "watch" | "deletecollection"));
        if target.name.is_none() && selects {
            target.name = selected_name(&arrival.query);
        }
        // A namespace is asked for as if it lay within itself.
        if target.plural == "namespaces" && target.group.is_empty() {
            target.namespace.clone_from(&target.name);
        }
        Self {
            verb: verb.unwrap_or_default().to_owned(),
            subject: Subject::Resource(target),
        }
    }

    /// Returns what somebody may not do, as errors say it.
    ///
    /// Source: `forbiddenMessage` in `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters`.
    pub(crate) fn forbidden_message(&self, user: &str) -> String {
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

    /// Returns the object the request is about, as errors name it.
    pub(crate) fn about(&self) -> Option<String> {
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

/// Returns the only name a list or a watch selects, which permission may be limited to.
fn selected_name(query: &Query) -> Option<String> {
    let selector = query.text("fieldSelector")?;
    let mut names = selector
        .split(',')
        .filter_map(|term| term.trim().strip_prefix("metadata.name="))
        .map(|name| name.trim_start_matches('='));
    names.next().map(str::to_owned)
}

fn verb_of(method: &str, named: bool) -> Option<&'static str> {
    Some(match (method, named) {
        ("POST", _) => "create",
        ("GET" | "HEAD", true) => "get",
        ("GET" | "HEAD", false) => "list",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => return None,
    })
}
