//! Checks approval and signing of certificate requests by their signer.
//!
//! Source: `certificates/approval`, `certificates/signing` and `certificates/subjectrestriction` in
//! `k8s.io/kubernetes/plugin/pkg/admission`.

use lariat_apimachinery::go_text::quoted;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::validation;
use serde_json::Value;

use crate::access::{Attributes, Decision, MASTERS, Subject, User};
use crate::server::Server;
use crate::status::ApiError;
use crate::strategy::Part;
use crate::wire::route::Target;

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
/// The signer whose certificates this server takes for users.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Checks that a user may decide about a request of its signer, or sign it.
///
/// # Errors
///
/// 403: the user may neither `approve` nor `sign` for this signer.
pub(super) fn check(
    server: &Server,
    resource: &Resource,
    user: &User,
    part: Part,
    (old, new): (&Object, &Object),
) -> Result<(), ApiError> {
    if !is_request(resource) {
        return Ok(());
    }
    let verb = match part {
        Part::Approval => "approve",
        Part::Status if status(old) != status(new) => "sign",
        _ => return Ok(()),
    };
    let signer = spec_text(new, "signerName");
    // `IsAuthorizedForSignerName`: the signer itself, or all of its domain.
    let domain = signer.split('/').next().unwrap_or_default();
    let names = [signer.to_owned(), format!("{domain}/*")];
    if names.iter().any(|name| may(server, user, verb, name)) {
        return Ok(());
    }
    let reason = format!(
        "user not permitted to {verb} requests with signerName {signer}",
        signer = quoted(signer)
    );
    Err(ApiError::forbidden(
        resource,
        metadata_text(new, "name"),
        &reason,
    ))
}

/// Refuses requests for a client certificate of the group `system:masters`.
///
/// # Errors
///
/// 403: the signer is that of clients, and an organization of the subject is `system:masters`.
pub(super) fn check_subject(resource: &Resource, object: &Object) -> Result<(), ApiError> {
    if !is_request(resource) || spec_text(object, "signerName") != CLIENT_SIGNER {
        return Ok(());
    }
    let refuse = |reason: &str| {
        Err(ApiError::forbidden(
            resource,
            metadata_text(object, "name"),
            reason,
        ))
    };
    match validation::requested_organizations(spec_text(object, "request")) {
        Err(reason) => refuse(&format!("failed to parse CSR: {reason}")),
        Ok(organizations) if organizations.iter().any(|each| each == MASTERS) => refuse(&format!(
            "use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        )),
        Ok(_) => Ok(()),
    }
}

fn is_request(resource: &Resource) -> bool {
    (resource.group.as_str(), resource.plural.as_str()) == (GROUP, PLURAL)
}

fn spec_text<'a>(object: &'a Object, member: &str) -> &'a str {
    let spec = object.get("spec");
    let text = spec.and_then(|spec| spec.get(member)?.as_str());
    text.unwrap_or_default()
}

/// Returns the parts of a status that only a signer writes.
fn status(request: &Object) -> [Option<&Value>; 2] {
    ["certificate", "conditions"].map(|member| request.get("status")?.get(member))
}

fn may(server: &Server, user: &User, verb: &str, name: &str) -> bool {
    let attributes = Attributes {
        verb: verb.to_owned(),
        subject: Subject::Resource(Target {
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            plural: "signers".to_owned(),
            name: Some(name.to_owned()),
            ..Target::default()
        }),
    };
    let decision = server.access.decide(&server.store, user, &attributes);
    matches!(decision, Decision::Allowed(_))
}
