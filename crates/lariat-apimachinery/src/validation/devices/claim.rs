//! ResourceClaims and their templates.

use super::request::check_devices;
use super::shapes::{CLAIM_SPEC, TEMPLATE_SPEC};
use super::status::check_status;
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::labels::{check_annotations, check_labels};

pub(in crate::validation) fn resource_claim(context: &Context<'_>, causes: &mut Causes) {
    if context.updates(Part::Status) {
        check_status(context, causes);
    } else if let Some(old) = context.old("spec") {
        // What cannot change is not checked again.
        causes.check_immutable_struct(&context.get("spec"), &old, CLAIM_SPEC);
    } else {
        check_devices(&context.get("spec").get("devices"), causes);
    }
}

pub(in crate::validation) fn resource_claim_template(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    if let Some(old) = context.old("spec") {
        causes.check_immutable_struct(&spec, &old, TEMPLATE_SPEC);
        return;
    }
    let metadata = spec.get("metadata");
    check_annotations(&metadata.get("annotations"), causes);
    check_labels(&metadata.get("labels"), causes);
    check_devices(&spec.get("spec").get("devices"), causes);
}
