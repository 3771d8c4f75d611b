//! Semantic equality of values, as the API server has it.

use serde_json::Value;

use crate::quantity::Quantity;

/// Returns whether two values are equal, whatever the form of amounts is.
///
/// `1Gi` equals `1073741824`.
///
/// Source: `Semantic.DeepEqual` in `k8s.io/apimachinery/pkg/api/equality`.
///
/// ```
/// use lariat_apimachinery::validation::are_equal;
/// use serde_json::json;
///
/// let requests = |amount: &str| json!({"resources": {"requests": {"memory": amount}}});
/// assert!(are_equal(&requests("1Gi"), &requests("1073741824")));
/// assert!(!are_equal(&requests("1Gi"), &requests("1G")));
/// assert!(!are_equal(&json!({"a": "1Gi"}), &json!({"a": "1073741824"})));
/// ```
#[must_use]
pub fn are_equal(one: &Value, other: &Value) -> bool {
    let path = Path::default();
    compare(path, one, other)
}

/// A member, and the member it is in.
#[derive(Debug, Clone, Copy, Default)]
struct Path<'a> {
    within: &'a str,
    name: &'a str,
}

fn compare(path: Path<'_>, one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| {
                    let path = Path {
                        within: path.name,
                        name,
                    };
                    let other = other.get(name);
                    other.is_some_and(|other| compare(path, value, other))
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            // The requests of a claim are a list, and no amounts.
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| are_equal(one, other))
        }
        (Value::String(one), Value::String(other)) => {
            one == other || is_amount(path) && are_same_amount(one, other)
        }
        _ => one == other,
    }
}

fn are_same_amount(one: &str, other: &str) -> bool {
    let amount = Quantity::parse(one);
    amount.is_some() && amount == Quantity::parse(other)
}

/// Returns whether a member is an amount.
// Maps of a client, such as labels, have texts only, so none is within a member with one of these names.
fn is_amount(path: Path<'_>) -> bool {
    matches!(path.within, "limits" | "requests" | "overhead")
        || matches!(
            (path.within, path.name),
            ("resourceFieldRef", "divisor") | ("emptyDir", "sizeLimit")
        )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_that_are_no_amounts_are_compared_as_they_are() {
        let named = |name: &str| json!({"devices": {"requests": [{"name": name}]}});
        assert!(!are_equal(&named("gpu"), &named("")));
        let broken = |amount: &str| json!({"limits": {"cpu": amount}});
        assert!(!are_equal(&broken("x"), &broken("y")));
        assert!(are_equal(&broken("1"), &broken("1000m")));
    }
}
