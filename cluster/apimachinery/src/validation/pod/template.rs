//! Templates of Pods.

use super::{annotations, ratchet, spec};
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::labels;

pub(in crate::validation) fn pod_template(context: &Context<'_>, causes: &mut Causes) {
    let old = context.old("template");
    check_template(&context.get("template"), old.as_ref(), causes);
}

/// Checks a template, which may replace another.
///
/// Rules that a kind has for its templates beside, such as a restart policy, are for the kind to check.
pub(in crate::validation) fn check_template(
    template: &Field<'_>,
    old: Option<&Field<'_>>,
    causes: &mut Causes,
) {
    let (metadata, spec) = (template.get("metadata"), template.get("spec"));
    // In Go the metadata are a part of the template itself, which the paths show.
    let annotations = template
        .get("annotations")
        .with(metadata.member("annotations"));
    let labels = template.get("labels").with(metadata.member("labels"));
    labels::check_labels(&labels, causes);
    labels::check_annotations(&annotations, causes);
    let was = old.map(|old| old.get("metadata").get("annotations"));
    annotations::check(&annotations, was.as_ref(), &spec, causes);
    let was = old.map(|old| old.get("spec"));
    // `ValidatePodTemplateSpec`. The Pods have no names yet, so claims of ephemeral volumes have none either.
    spec::check(&spec, "", ratchet::options(false, was.as_ref()), causes);
    annotations::check_profiles(&annotations, &spec, causes);
    if spec.has("ephemeralContainers") {
        let at = spec.get("ephemeralContainers");
        causes.forbidden(&at, "ephemeral containers not allowed in pod template");
    }
}
