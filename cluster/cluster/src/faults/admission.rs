//! Refusals as by admission control.

use lariat_apimachinery::object::metadata_text;

use crate::status::ApiError;
use crate::store::Range;
use crate::verbs::Call;

/// Resources of the core group that quotas count by their bare names.
///
/// Source: `k8s.io/kubernetes/pkg/quota/v1/evaluator/core`.
const LEGACY: [&str; 7] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// Refuses a write for a reason.
pub(super) fn rejected(call: &Call, reason: &str) -> ApiError {
    ApiError::forbidden(&call.resource, &name(call), reason)
}

/// Refuses a creation because a quota is used up.
///
/// Source of the text: `CheckRequest` in `k8s.io/apiserver/pkg/admission/plugin/resourcequota`.
pub(super) fn over_quota(call: &Call, quota: &str) -> ApiError {
    let resource = &call.resource;
    let counted = if resource.group.is_empty() && LEGACY.contains(&&*resource.plural) {
        resource.plural.clone()
    } else {
        format!("count/{}", resource.qualified())
    };
    let range = Range {
        namespace: call.namespace(),
        ..Range::default()
    };
    let page = call.server.store.range(resource.table, &range);
    let used = page.map_or(0, |page| page.objects.len());
    let reason = format!(
        "exceeded quota: {quota}, requested: {counted}=1, used: {counted}={used}, limited: \
         {counted}={used}"
    );
    rejected(call, &reason)
}

/// Returns the name of the object, which creations have only in their body.
fn name(call: &Call) -> String {
    let in_body = || {
        let sent = call.decode().ok()?;
        Some(metadata_text(&sent, "name").to_owned())
    };
    match call.name() {
        "" => in_body().unwrap_or_default(),
        name => name.to_owned(),
    }
}
