//! FlowSchemas and PriorityLevelConfigurations.

mod flow;
mod level;

use std::collections::HashSet;

use super::causes::Causes;
use super::context::Context;
use super::field::Field;

pub(super) use flow::flow_schema;
pub(super) use level::priority_level;

/// The mandatory objects, whose specs are fixed.
const MANDATORY: &[&str] = &["exempt", "catch-all"];

/// Returns whether an update changes a mandatory object outside its `free` members.
fn changes_mandatory(context: &Context<'_>, name: &str, free: &[&str]) -> bool {
    let Some(old) = context.old("spec").filter(|_| MANDATORY.contains(&name)) else {
        return false;
    };
    let spec = context.get("spec");
    let names = [&spec, &old].into_iter().flat_map(|each| each.entries());
    let mut names = names.map(|(name, _)| name);
    names.any(|name| !free.contains(&name) && spec.member(name) != old.member(name))
}

fn check_status(status: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        causes.check_unique(&kind, &mut seen);
        causes.check_given(&kind, "");
    }
}
