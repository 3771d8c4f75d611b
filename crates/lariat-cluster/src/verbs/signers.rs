//! Who may approve and sign requests for certificates.
//!
//! Source: `certificates/approval` and `certificates/signing` in `k8s.io/kubernetes/plugin/pkg/admission`.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use serde_json::Value;

use crate::access::{Attributes, Decision, Subject, User};
use crate::server::Server;
use crate::status::ApiError;
use crate::strategy::Part;
use crate::wire::route::Target;

const GROUP: &str = "certificates.k8s.io";

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
    if (resource.group.as_str(), resource.plural.as_str()) != (GROUP, "certificatesigningrequests")
    {
        return Ok(());
    }
    let verb = match part {
        Part::Approval => "approve",
        Part::Status if status(old) != status(new) => "sign",
        _ => return Ok(()),
    };
    let spec = new.get("spec");
    let signer = spec.and_then(|spec| spec.get("signerName")?.as_str());
    let signer = signer.unwrap_or_default();
    // `IsAuthorizedForSignerName`: the signer itself, or all of its domain.
    let domain = signer.split('/').next().unwrap_or_default();
    let names = [signer.to_owned(), format!("{domain}/*")];
    if names.iter().any(|name| may(server, user, verb, name)) {
        return Ok(());
    }
    let reason = format!("user not permitted to {verb} requests with signerName {signer:?}");
    Err(ApiError::forbidden(
        resource,
        metadata_text(new, "name"),
        &reason,
    ))
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
