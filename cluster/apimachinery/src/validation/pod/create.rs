//! Pods themselves.

use super::{annotations, resize, status, update, whole};
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};

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
    // `ValidatePodCreate`.
    whole::check(context, causes);
    let spec = context.get("spec");
    if spec.has("ephemeralContainers") {
        let at = spec.get("ephemeralContainers");
        causes.forbidden(&at, "cannot be set on create");
    }
    let gated = !spec.get("schedulingGates").is_void();
    // A Pod with a node is scheduled already, so its gates could not hold it back.
    if gated && !spec.text_of("nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        causes.forbidden(&spec.get("nodeName"), detail);
    }
    let annotations = context.get("metadata").get("annotations");
    annotations::check_profiles(&annotations, &spec, causes);
}
