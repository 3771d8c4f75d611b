//! Flow control: which requests are of a flow, and how many of a priority are answered at a time.

mod flow;
mod level;

use super::causes::Causes;
use super::context::Context;
use super::field::Field;

pub(super) use flow::flow_schema;
pub(super) use level::priority_level;

/// The objects that the API server itself relies on: their specs do not change.
const MANDATORY: &[&str] = &["exempt", "catch-all"];

/// Returns whether a spec differs from the one that it must have, which the replaced state has.
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
    let mut seen = Vec::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        if seen.contains(&kind.text()) {
            causes.duplicate_as(&kind, kind.text());
        }
        seen.push(kind.text());
        causes.check_given(&kind, "");
    }
}
