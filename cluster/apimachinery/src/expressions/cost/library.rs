//! The cost of the functions that the API server adds to the language.
//!
//! Source: `EstimateCallCost` in `k8s.io/apiserver/pkg/cel/library/cost.go`.

use super::estimator::{Estimator, NEW_LIST, NEW_STRUCT};
use super::invocation::{Estimate, Invocation, Operand};
use super::operators::{CHARACTER, PATTERN, matching};
use super::size::{Size, scaled};
use crate::expressions::tree::{Kind, Literal};
use crate::expressions::types::Type;

/// The cost of asking an authorizer, which allows two questions in an expression.
const AUTHORIZATION: u64 = 350_000;
/// The longest regular expression of a named format.
const LONGEST_FORMAT: f64 = 128.0;
/// The largest named format.
const LARGEST_FORMAT: u64 = 64;
/// The bytes of the larger kind of address.
const ADDRESS: u64 = 16;

/// Returns the cost of a library function itself; `None` for other functions.
pub(super) fn estimate<'t>(
    estimator: &Estimator<'t>,
    invocation: &Invocation<'_, 't>,
) -> Option<Estimate> {
    let size = |operand: &Operand<'t>| estimator.size_of(operand);
    let read = |operand: &Operand<'t>| Estimate::of(size(operand).cost(CHARACTER));
    let first = invocation.arguments.first();
    Some(match (invocation.function, invocation.target) {
        ("check", _) => Estimate::of(AUTHORIZATION),
        ("fieldSelector" | "labelSelector", _) if invocation.arguments.len() == 1 => {
            Estimate::of(selector(size(first?)))
        }
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(target)) => {
            Estimate::of(traversal(estimator, target))
        }
        ("url" | "jsonpatch.escapeKey", _) if invocation.arguments.len() == 1 => {
            let size = size(first?);
            Estimate::sized(size.cost(CHARACTER), size)
        }
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(target)) => {
            let size = size(target);
            Estimate::sized(size.cost(CHARACTER), size)
        }
        ("replace", Some(target)) => {
            let [old, new, ..] = invocation.arguments else {
                return None;
            };
            let text = size(target);
            let result = replaced(text, size(old), size(new));
            Estimate::sized(text.cost(2.0 * CHARACTER), result)
        }
        ("split", Some(target)) => {
            let text = size(target);
            // With an empty separator each character is an element.
            let most = written(invocation.arguments.get(1)).unwrap_or(text.most);
            Estimate::sized(text.cost(2.0 * CHARACTER), Size::up_to(0, most))
        }
        ("join", Some(target)) => {
            let result = joined(estimator, target, first);
            Estimate::sized(result.cost(CHARACTER), result)
        }
        ("find" | "findAll", Some(target)) => {
            let text = size(target);
            let cost = matching(text, size(first?));
            Estimate::sized(cost, Size::up_to(0, text.most))
        }
        ("ip", Some(_)) => Estimate::of(1),
        ("ip.isCanonical", _) => Estimate::of(size(first?).cost(2.0 * CHARACTER)),
        (
            "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
            _,
        ) => read(first?),
        ("containsIP" | "containsCIDR", _) => contained(invocation, size(first?)),
        ("validate", _) => {
            let cost = size(first?).cost(CHARACTER);
            Estimate::of(scaled(cost, LONGEST_FORMAT * PATTERN))
        }
        ("_==_", _) => equality(invocation)?,
        (name, _) if is_accessor(name) => Estimate::of(1),
        _ => return None,
    })
}

impl<'t> Estimator<'t> {
    /// Returns the elements of a list as an operand; `None` for other values.
    fn element(&self, list: &Operand<'t>) -> Option<Operand<'t>> {
        let kind = list.kind.parts().first().copied()?;
        let path = if list.path.is_empty() {
            list.path.clone()
        } else {
            list.path.copied("@items")
        };
        Some(Operand {
            tree: None,
            path,
            kind,
            size: None,
        })
    }
}

/// Functions that read what is known already, or compute with single numbers.
fn is_accessor(name: &str) -> bool {
    matches!(
        name,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

/// A selector is read, and each two characters of it may be a requirement.
fn selector(text: Size) -> u64 {
    let requirements = scaled(text.most, 0.5);
    let made = scaled(requirements, (NEW_LIST + NEW_STRUCT) as f64);
    NEW_LIST
        .saturating_add(text.cost(CHARACTER))
        .saturating_add(made)
}

/// Returns the cost of traversing a list or a text.
fn traversal<'t>(estimator: &Estimator<'t>, target: &Operand<'t>) -> u64 {
    let count = estimator.size_of(target);
    let Some(element) = estimator.element(target) else {
        return count.cost(CHARACTER);
    };
    let mut of_each = 1_u64;
    if matches!(element.kind, Type::Text | Type::Bytes) {
        of_each = of_each.saturating_add(estimator.size_of(&element).cost(CHARACTER));
    }
    count.most.saturating_mul(of_each)
}

/// Returns the size of a text in which another one is replaced.
fn replaced(text: Size, old: Size, new: Size) -> Size {
    let (mut count, mut kept) = (Size::fixed(0), Size::fixed(0));
    if old.least == 0 {
        // The new text is put around each character.
        count.most = text.most.saturating_add(1);
        kept.most = text.most;
    } else if new.most <= old.least {
        kept.most = text.most;
    } else {
        count.most = divided(text.most, old.least);
    }
    if old.most == 0 {
        count.least = text.least.saturating_add(1);
        kept.least = text.least;
    } else if old.most <= new.least {
        kept.least = text.least;
    } else {
        count.least = divided(text.least, old.most);
    }
    count.times(new).plus(kept)
}

/// Divides, rounded up, as Go does by way of fractions.
fn divided(size: u64, by: u64) -> u64 {
    let quotient = (size as f64 / by as f64).ceil();
    // What amd64 makes of a fraction that is too large.
    if quotient >= 2_f64.powi(64) {
        1 << 63
    } else {
        quotient as u64
    }
}

/// Returns the number that is written as an operand.
fn written(operand: Option<&Operand<'_>>) -> Option<u64> {
    match operand?.tree?.kind {
        // A negative number is no limit.
        Kind::Literal(Literal::Int(number)) => Some(number.cast_unsigned()),
        _ => None,
    }
}

/// Returns the size of the text that the elements of a list make.
fn joined<'t>(
    estimator: &Estimator<'t>,
    list: &Operand<'t>,
    separator: Option<&Operand<'t>>,
) -> Size {
    let count = estimator.size_of(list);
    let element = estimator.element(list);
    let texts = element.map_or(Size::fixed(0), |element| {
        count.times(estimator.size_of(&element))
    });
    let Some(separator) = separator else {
        return texts;
    };
    let between = Size::up_to(count.least.saturating_sub(1), count.most.saturating_sub(1));
    texts.plus(estimator.size_of(separator).times(between))
}

/// Returns the cost of finding out whether an address or a network is in a network.
fn contained(invocation: &Invocation<'_, '_>, other: Size) -> Estimate {
    let mut cost = Size::fixed(2 * ADDRESS).cost(CHARACTER);
    if invocation.function == "containsCIDR" {
        // The network is masked too.
        cost += Size::fixed(ADDRESS).cost(CHARACTER) + 1;
    }
    // A text has to be read first.
    if invocation.signature.arguments.get(1) == Some(&Type::Text) {
        cost = cost.saturating_add(other.cost(CHARACTER));
    }
    Estimate::of(cost)
}

/// Returns the cost of comparing two values of a type of the API server.
fn equality(invocation: &Invocation<'_, '_>) -> Option<Estimate> {
    let [left, right] = invocation.arguments else {
        return None;
    };
    if left.kind != right.kind {
        return None;
    }
    Some(Estimate::of(match left.kind {
        Type::Opaque("net.IP" | "net.CIDR") => 1,
        Type::Object(object) => match object.name() {
            "kubernetes.Quantity" | "kubernetes.Semver" => 1,
            name if name.starts_with("kubernetes.authorization.") => 1,
            "kubernetes.NamedFormat" => Size::fixed(LARGEST_FORMAT).cost(CHARACTER),
            // Only the right one is looked at, as in Go.
            "kubernetes.URL" => right.size.unwrap_or(Size::fixed(1)).cost(CHARACTER),
            _ => return None,
        },
        _ => return None,
    }))
}
