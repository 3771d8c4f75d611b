//! FlowSchemas and PriorityLevelConfigurations.

mod flow;
mod level;

use std::collections::HashSet;

use serde_json::Value;

use super::causes::Causes;
use super::field::Field;
use crate::object::Object;

pub(super) use flow::flow_schema;
pub(super) use level::priority_level;

/// Returns whether a spec differs from that of a mandatory object.
///
/// Its `free` members may. The server needs these objects, so their specs are fixed, also when they are created.
fn differs_from_mandatory(
    mandatory: &[(&str, &str)],
    spec: &Field<'_>,
    name: &str,
    free: &[&str],
) -> bool {
    let Some((_, fixed)) = mandatory.iter().find(|(known, _)| *known == name) else {
        return false;
    };
    let fixed: Value = serde_json::from_str(fixed).unwrap_or_default();
    let names = [spec.value(), &fixed]
        .into_iter()
        .filter_map(Value::as_object);
    let mut names = names.flat_map(Object::keys);
    names.any(|name| {
        let fixed = fixed.get(name).unwrap_or(&Value::Null);
        !free.contains(&name.as_str()) && spec.member(name) != fixed
    })
}

fn check_status(status: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        causes.check_unique(&kind, &mut seen);
        causes.check_given(&kind, "");
    }
}
