//! Amounts of resources, of which thousandths are the smallest parts.
//!
//! Source: `SetDefaults_ResourceList` in `k8s.io/kubernetes/pkg/apis/core/v1`.

use serde_json::Value;

use super::members::inner;
use crate::object::Object;
use crate::quantity::Quantity;

/// Rounds the amounts in some members of an object up to thousandths.
pub(super) fn round(holder: &mut Object, members: &[&str]) {
    for member in members {
        let amounts = inner(holder, member).into_iter().flatten();
        for (_, amount) in amounts {
            if let Some(rounded) = rounded(amount) {
                *amount = rounded.into();
            }
        }
    }
}

/// Rounds requests and limits.
pub(super) fn round_resources(holder: &mut Object) {
    if let Some(resources) = inner(holder, "resources") {
        round(resources, &["limits", "requests"]);
    }
}

/// Returns an amount that is rounded; `None` if it has no smaller parts.
fn rounded(amount: &Value) -> Option<String> {
    let quantity = Quantity::parse(amount.as_str()?)?;
    quantity.in_thousandths().map(|amount| amount.to_string())
}
