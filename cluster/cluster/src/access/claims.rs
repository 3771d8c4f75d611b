//! The claims of a service account's token.
//!
//! Source: `k8s.io/kubernetes/pkg/serviceaccount/claims.go`. The members are in the order in which Go writes them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::tokens::AUDIENCE;

/// The claims of a token; times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claims {
    #[serde(rename = "aud")]
    pub(super) audiences: Vec<String>,
    #[serde(rename = "exp")]
    pub(super) expires: i64,
    #[serde(rename = "iat")]
    pub(super) issued: i64,
    #[serde(rename = "iss")]
    pub(super) issuer: String,
    #[serde(rename = "jti")]
    pub(super) id: String,
    #[serde(rename = "kubernetes.io")]
    pub(super) kubernetes: Kubernetes,
    #[serde(rename = "nbf")]
    pub(super) not_before: i64,
    #[serde(rename = "sub")]
    pub(super) subject: String,
}

/// The namespace and the objects that a token belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kubernetes {
    pub(super) namespace: String,
    #[serde(flatten)]
    pub(super) bound: Bound,
    #[serde(rename = "serviceaccount")]
    pub(super) account: Reference,
    /// The time at which a client should have asked for another token.
    #[serde(rename = "warnafter", skip_serializing_if = "Option::is_none")]
    pub(super) warn_after: Option<i64>,
}

/// The objects with which a token becomes invalid, beside its account. A Pod comes with its node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bound {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
}

/// An object, by its name and uid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    /// Empty for a node that is missing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

/// The request for a token.
#[derive(Debug)]
pub(crate) struct Issue<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) account: Reference,
    pub(crate) audiences: Vec<String>,
    pub(crate) bound: Bound,
    pub(crate) seconds: i64,
}

/// The lifetime of a projected token, as it is requested and as it is granted.
///
/// The admission of Pods asks for it. As programs may not know that tokens end, it is good for a year, and its claims
/// say when it should have been renewed.
const PROJECTED_SECONDS: i64 = 3607;
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

impl Claims {
    pub(super) fn new(issue: Issue<'_>, id: String, now: Timestamp) -> Self {
        let now = now.as_second();
        let is_own = issue.audiences.iter().all(|each| each == AUDIENCE);
        let is_extended = issue.seconds == PROJECTED_SECONDS && issue.bound.pod.is_some() && is_own;
        let seconds = if is_extended {
            EXTENDED_SECONDS
        } else {
            issue.seconds
        };
        Self {
            audiences: issue.audiences,
            expires: now.saturating_add(seconds),
            issued: now,
            issuer: AUDIENCE.to_owned(),
            id,
            not_before: now,
            subject: format!(
                "system:serviceaccount:{}:{}",
                issue.namespace, issue.account.name
            ),
            kubernetes: Kubernetes {
                namespace: issue.namespace.to_owned(),
                bound: issue.bound,
                account: issue.account,
                warn_after: is_extended.then(|| now.saturating_add(issue.seconds)),
            },
        }
    }
}
