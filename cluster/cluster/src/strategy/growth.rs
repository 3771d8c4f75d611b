//! Checks whether claims may grow.
//!
//! Source: `storage/persistentvolume/resize` in `k8s.io/kubernetes/plugin/pkg/admission`.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_text};
use lariat_apimachinery::quantity::Quantity;
use lariat_core::ObjectKey;
use serde_json::Value;

use crate::server::Server;
use crate::status::ApiError;

/// The table of StorageClasses.
const CLASSES: &str = "storageclasses.storage.k8s.io";
/// The annotation that `storageClassName` replaced.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Checks that a claim that grows is bound, and of a class that allows it.
///
/// # Errors
///
/// 403: the claim is not bound, or its class does not allow it to grow.
pub(crate) fn check_growth(
    server: &Server,
    resource: &Resource,
    old: &Object,
    claim: &Object,
) -> Result<(), ApiError> {
    let is_claim = resource.group.is_empty() && resource.plural == "persistentvolumeclaims";
    if !is_claim || size(claim) <= size(old) {
        return Ok(());
    }
    let phase = old.get("status").map(|status| &status["phase"]);
    let reason = if phase.is_none_or(|phase| phase != "Bound") {
        "Only bound persistent volume claims can be expanded"
    } else if !may_grow(server, old, claim) {
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
         support resize"
    } else {
        return Ok(());
    };
    let name = metadata_text(claim, "name");
    Err(ApiError::forbidden(resource, name, reason))
}

fn size(claim: &Object) -> Option<Quantity> {
    let size = claim
        .get("spec")
        .map(|spec| &spec["resources"]["requests"]["storage"]);
    size.and_then(Value::as_str).and_then(Quantity::parse)
}

// `allowResize`.
fn may_grow(server: &Server, old: &Object, claim: &Object) -> bool {
    let name = class(claim);
    if name.is_empty() || name != class(old) {
        return false;
    }
    let table = server.store.table(CLASSES);
    let found = server.store.get(table, &ObjectKey::cluster(name));
    found.is_some_and(|class| class.object().get("allowVolumeExpansion") == Some(&true.into()))
}

// `GetPersistentVolumeClaimClass`: the annotation counts, if it is there.
fn class(claim: &Object) -> &str {
    let annotations = claim
        .get("metadata")
        .map(|metadata| &metadata["annotations"]);
    let annotated = annotations.and_then(|annotations| annotations.get(CLASS));
    let named = || claim.get("spec").map(|spec| &spec["storageClassName"]);
    let class = annotated.or_else(named).and_then(Value::as_str);
    class.unwrap_or_default()
}
