//! RuntimeClasses.

use super::causes::Causes;
use super::context::Context;
use super::field::Field;
use super::structs;
use super::{formats, labels, pod};

pub(super) fn runtime_class(context: &Context<'_>, causes: &mut Causes) {
    let handler = context.get("handler");
    causes.check_name(&handler, formats::dns_label);
    pod::check_fixed_overhead(&context.get("overhead"), causes);
    let scheduling = context.get("scheduling");
    labels::check_labels(&scheduling.get("nodeSelector"), causes);
    check_tolerations(&scheduling.get("tolerations"), causes);
    if let Some(old) = context.old("handler") {
        causes.check_immutable(&handler, &old);
    }
}

fn check_tolerations(list: &Field<'_>, causes: &mut Causes) {
    // `validateTolerations`: the rules of Pods, and no duplicates.
    pod::check_tolerations(list, causes);
    let members = ["key", "operator", "value", "effect"];
    let key = |toleration: &Field<'_>| members.map(|name| toleration.member(name).clone());
    let mut seen = Vec::new();
    for toleration in list.items() {
        if seen.contains(&key(&toleration)) {
            let shown = structs::shown(toleration.value(), pod::TOLERATION);
            causes.duplicate_struct(&toleration, &shown, "");
        }
        seen.push(key(&toleration));
    }
}
