//! Pods themselves.

use super::options::Options;
use super::{annotations, container, resize, spec, status, update};
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;

pub(in crate::validation) fn pod(context: &Context<'_>, causes: &mut Causes) {
    match (context.is_creation(), context.part) {
        (true, _) => create(context, causes),
        (_, Part::Status) => status::check(context, causes),
        (_, Part::Ephemeral) => update::check_ephemeral(context, causes),
        (_, Part::Resize) => resize::check(context, causes),
        _ => update::check(context, causes),
    }
}

fn create(context: &Context<'_>, causes: &mut Causes) {
    check_whole(context, causes);
    let spec = context.get("spec");
    if spec.has("ephemeralContainers") {
        let at = spec.get("ephemeralContainers");
        causes.forbidden(&at, "cannot be set on create");
    }
    let gated = !spec.get("schedulingGates").is_void();
    if gated && !spec.text_of("nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        causes.forbidden(&spec.get("nodeName"), detail);
    }
    let annotations = context.get("metadata").get("annotations");
    annotations::check_profiles(&annotations, &spec, causes);
}

/// Checks metadata and spec of a new or a changed Pod.
pub(super) fn check_whole(context: &Context<'_>, causes: &mut Causes) {
    let (metadata, spec) = (context.get("metadata"), context.get("spec"));
    let old = context.old("metadata").map(|old| old.get("annotations"));
    annotations::check(&metadata.get("annotations"), old.as_ref(), &spec, causes);
    let options = Options::new(true, context.old("spec").as_ref());
    spec::check(&spec, metadata.text_of("name"), options, causes);
    if spec.text_of("serviceAccountName").is_empty() {
        check_tokens(&spec, causes);
    }
    for list in ["containers", "initContainers"] {
        for each in spec.get(list).items() {
            container::check_image(&each, causes);
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
