//! Whether somebody may do something.

use serde_json::{Value, json};

use super::user::MASTERS;
use super::{Attributes, Mode, Subject, User, rbac};
use crate::server::Server;

/// What comes of asking whether something is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is, for a reason that may be empty.
    Allowed(String),
    /// Nothing allows it.
    NoOpinion,
}

/// What anybody may ask a server that requires authentication.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Decides whether a user may do something.
pub(crate) fn decide(server: &Server, user: &User, attributes: &Attributes) -> Decision {
    let allowed = match server.access.mode {
        Mode::Open => true,
        Mode::Authenticated => !user.is_anonymous() || is_public(attributes),
        Mode::Rbac if user.belongs_to(MASTERS) => true,
        Mode::Rbac => return rbac::decide(server, user, attributes),
    };
    match allowed {
        true => Decision::Allowed(String::new()),
        false => Decision::NoOpinion,
    }
}

fn is_public(attributes: &Attributes) -> bool {
    match &attributes.subject {
        Subject::Path(path) => attributes.verb == "get" && PUBLIC.contains(&path.as_str()),
        Subject::Resource(_) => false,
    }
}

/// Returns what a user may do with the resources of a namespace, and with paths below no resource.
pub(crate) fn rules(server: &Server, user: &User, namespace: &str) -> (Vec<Value>, Vec<Value>) {
    let may_all = match server.access.mode {
        Mode::Open => true,
        Mode::Authenticated => !user.is_anonymous(),
        Mode::Rbac => user.belongs_to(MASTERS),
    };
    if may_all {
        let resources = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let paths = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
        return (vec![resources], vec![paths]);
    }
    if server.access.mode == Mode::Rbac {
        return rbac::rules(server, user, namespace);
    }
    (
        Vec::new(),
        vec![json!({"verbs": ["get"], "nonResourceURLs": PUBLIC})],
    )
}
