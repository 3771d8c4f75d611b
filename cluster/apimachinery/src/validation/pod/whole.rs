//! Rules for new and for changed Pods.

use super::options::Options;
use super::{annotations, pod_context, ratchet, spec};
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;

/// Checks metadata and spec of a new or a changed Pod.
pub(super) fn check(context: &Context<'_>, causes: &mut Causes) {
    let (metadata, spec) = (context.get("metadata"), context.get("spec"));
    let old = context.old("metadata").map(|old| old.get("annotations"));
    annotations::check(&metadata.get("annotations"), old.as_ref(), &spec, causes);
    let options = Options {
        is_static: annotations::is_mirror(&metadata.get("annotations")),
        ..ratchet::options(true, context.old("spec").as_ref())
    };
    spec::check(&spec, metadata.text_of("name"), options, causes);
    // `validatePodMetadataAndSpec`; admission gives every Pod an account, so this is for Pods of the kubelet.
    if spec.text_of("serviceAccountName").is_empty() {
        check_tokens(&spec, causes);
    }
    for list in ["containers", "initContainers"] {
        for each in spec.get(list).items() {
            pod_context::check_image(&each, causes);
        }
    }
}

/// Refuses tokens of an account that a Pod does not have.
fn check_tokens(spec: &Field<'_>, causes: &mut Causes) {
    for volume in spec.get("volumes").items() {
        for source in volume.get("projected").get("sources").items() {
            let token = source.get("serviceAccountToken");
            if token.is_set() {
                let detail = "must not be specified when serviceAccountName is not set";
                causes.forbidden(&token, detail);
            }
        }
    }
}
