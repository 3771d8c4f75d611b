//! RuntimeClasses.

use super::causes::Causes;
use super::context::Context;
use super::field::Field;
use super::structs;
use super::{formats, labels, pod, resources};

pub(super) fn runtime_class(context: &Context<'_>, causes: &mut Causes) {
    let handler = context.get("handler");
    if let Some(old) = context.old("handler") {
        causes.check_immutable(&handler, &old);
    }
    causes.check_name(&handler, formats::dns_label);
    let limits = context.get("overhead").get("podFixed");
    // Overhead is checked like resources of a container with limits, whose paths the causes have.
    let at = context.get("overhead").get("limits");
    for (name, amount) in limits.entries() {
        let at = at.key(name).with(amount.value());
        resources::check_container_name(&at, name, causes);
        resources::check_amount(&at, name, causes);
    }
    let scheduling = context.get("scheduling");
    labels::check_labels(&scheduling.get("nodeSelector"), causes);
    check_tolerations(&scheduling.get("tolerations"), causes);
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
