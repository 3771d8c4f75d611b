//! The `authorizer` of expressions: checks about the user of a request.

use std::sync::Arc;

use lariat_apimachinery::admission::{Authorize, Authorized, Check};

use super::request::Request;
use crate::access::{Attributes, Decision, Subject, User};
use crate::wire::route::Target;

impl Request<'_> {
    /// Returns the authorizer of expressions, for the user of the request.
    pub(super) fn authorizer(&self) -> Authorize {
        let (server, user) = (Arc::clone(self.server), self.user.clone());
        Arc::new(move |check| {
            // `authorizer.serviceAccount(…)` in an expression asks about another user than that of the request.
            let account = check.account.as_ref();
            let account = account
                .map(|(namespace, name)| User::service_account(namespace, name).authenticated());
            let user = account.as_ref().unwrap_or(&user);
            match server.access.decide(&server.store, user, &asked(check)) {
                Decision::Allowed(reason) => Authorized {
                    allowed: true,
                    reason,
                },
                Decision::NoOpinion(reason) => Authorized {
                    allowed: false,
                    reason,
                },
            }
        })
    }
}

fn asked(check: &Check) -> Attributes {
    let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    Attributes {
        verb: check.verb.clone(),
        subject: if check.path.is_empty() {
            Subject::Resource(Target {
                group: check.group.clone(),
                plural: check.plural.clone(),
                subresource: given(&check.subresource),
                namespace: given(&check.namespace),
                name: given(&check.name),
                ..Target::default()
            })
        } else {
            Subject::Path(check.path.clone())
        },
    }
}
