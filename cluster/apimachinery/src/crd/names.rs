//! The names in a CRD.

use serde_json::Value;

use super::parts::{array, text};
use crate::cause::StatusCause;
use crate::names::check_dns_1035;

/// Checks names; in a spec some are required, in a status none is.
pub(super) fn check(names: &Value, path: &str, required: bool) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let field = |member: &str| format!("{path}.{member}");
    // Required members come first and only for a spec: `ValidateCustomResourceDefinitionNames` does not require any,
    // since a status has none at first.
    for member in ["plural", "singular", "kind", "listKind"] {
        if required && text(names, member).is_empty() {
            causes.push(StatusCause::required(&field(member), ""));
        }
    }
    for member in ["plural", "singular"] {
        causes.extend(label(text(names, member), &field(member)));
    }
    for member in ["kind", "listKind"] {
        let name = text(names, member);
        // An empty name has an error of its own above.
        if let Err(rule) = check_dns_1035(&name.to_lowercase())
            && !name.is_empty()
        {
            let rule = format!("may have mixed case, but should otherwise match: {rule}");
            causes.push(StatusCause::invalid(&field(member), &name.into(), &rule));
        }
    }
    causes.extend(labels(names, "shortNames", path));
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let rule = "kind and listKind may not be the same";
        causes.push(StatusCause::invalid(&field("listKind"), &kind.into(), rule));
    }
    causes.extend(labels(names, "categories", path));
    causes
}

/// Checks a label that may be absent.
fn label(name: &str, field: &str) -> Option<StatusCause> {
    let rule = check_dns_1035(name).err()?;
    (!name.is_empty()).then(|| StatusCause::invalid(field, &name.into(), &rule))
}

fn labels(names: &Value, member: &str, path: &str) -> Vec<StatusCause> {
    let check = |(at, name): (usize, &Value)| {
        let rule = check_dns_1035(name.as_str().unwrap_or_default()).err()?;
        Some(StatusCause::invalid(
            &format!("{path}.{member}[{at}]"),
            name,
            &rule,
        ))
    };
    array(names, member)
        .iter()
        .enumerate()
        .filter_map(check)
        .collect()
}
