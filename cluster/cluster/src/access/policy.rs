//! Decisions on access: which user may do what.

use serde_json::{Value, json};

use super::attributes::{Attributes, Decision, Subject};
use super::rbac::{self, Rules};
use super::tokens::Tokens;
use super::user::{MASTERS, User};
use crate::store::Store;

/// The paths that a server with authentication answers to all clients.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The authorization mode of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// Every client may do everything.
    #[default]
    Open,
    /// Authenticated users may do everything, others only read health and version.
    Authenticated,
    /// The stored roles and bindings decide.
    Rbac,
}

/// Authentication and authorization of a cluster.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) mode: Mode,
    /// It listens on a loopback address.
    pub(crate) is_local: bool,
    pub(crate) tokens: Tokens,
    /// The URL under which clients reach the server.
    pub(crate) origin: String,
}

impl Access {
    /// Decides whether a user may do something.
    pub(crate) fn decide(&self, store: &Store, user: &User, attributes: &Attributes) -> Decision {
        let allowed = match self.mode {
            Mode::Open => true,
            Mode::Authenticated => !user.is_anonymous() || is_public(attributes),
            Mode::Rbac if user.belongs_to(MASTERS) => true,
            Mode::Rbac => return rbac::decide(store, user, attributes),
        };
        if allowed {
            Decision::Allowed(String::new())
        } else {
            Decision::NoOpinion(String::new())
        }
    }

    /// Returns the rules of a user in a namespace.
    pub(crate) fn rules(&self, store: &Store, user: &User, namespace: &str) -> Rules {
        let may_all = match self.mode {
            Mode::Open => true,
            Mode::Authenticated => !user.is_anonymous(),
            Mode::Rbac => user.belongs_to(MASTERS),
        };
        let mut rules = rbac::rules(store, user, namespace);
        if may_all {
            let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
            first(&mut rules.resources, all);
            let all = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
            first(&mut rules.paths, all);
        } else if self.mode == Mode::Authenticated {
            rules = Rules {
                paths: vec![json!({"verbs": ["get"], "nonResourceURLs": PUBLIC})],
                ..Rules::default()
            };
        }
        rules
    }
}

/// Inserts a rule before all others.
fn first(rules: &mut Vec<Value>, rule: Value) {
    // The role cluster-admin has the same rule, which would be listed twice.
    rules.retain(|each| *each != rule);
    rules.insert(0, rule);
}

fn is_public(attributes: &Attributes) -> bool {
    match &attributes.subject {
        // As the role system:public-info-viewer, which names both spellings of the version's path.
        Subject::Path(path) => attributes.verb == "get" && PUBLIC.contains(&path.as_str()),
        Subject::Resource(_) => false,
    }
}
