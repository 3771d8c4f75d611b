//! ResourceClaims and their templates.

use super::request::check_devices;
use super::shapes::{CLAIM_SPEC, TEMPLATE_SPEC};
use super::status::check_status;
use crate::validation::causes::Causes;
use crate::validation::claims::check_template_metadata;
use crate::validation::context::{Context, Part};

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
    check_template_metadata(&spec.get("metadata"), causes);
    // Unlike a claim, a template is checked again on updates.
    check_devices(&spec.get("spec").get("devices"), causes);
    if let Some(old) = context.old("spec") {
        causes.check_immutable_struct(&spec, &old, TEMPLATE_SPEC);
    }
}
