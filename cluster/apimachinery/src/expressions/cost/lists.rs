//! The cost of the functions over lists and sets.
//!
//! Source: `ext/lists.go` and `ext/sets.go` of cel-go.

use super::estimator::{Estimator, NEW_LIST};
use super::invocation::{Estimate, Invocation, Operand};
use super::operators::CHARACTER;
use super::size::Size;
use crate::expressions::tree::{Kind, Literal};
use crate::expressions::types::Type;

/// Returns the cost of a list function itself; `None` for other functions.
pub(super) fn estimate<'t>(
    estimator: &Estimator<'t>,
    invocation: &Invocation<'_, 't>,
) -> Option<Estimate> {
    let size = |operand: &Operand<'t>| estimator.size_of(operand);
    Some(
        match (invocation.function, invocation.target, invocation.arguments) {
            ("sets.contains" | "sets.intersects", None, [left, right]) => {
                Estimate::of(size(left).times(size(right)).cost(1.0).saturating_add(1))
            }
            // Each list is searched in the other one.
            ("sets.equivalent", None, [left, right]) => {
                Estimate::of(size(left).times(size(right)).cost(2.0).saturating_add(1))
            }
            ("slice", Some(list), [begin, end]) => {
                let end = number(end).unwrap_or(size(list).most);
                let length = end.wrapping_sub(number(begin).unwrap_or(0));
                made(1.0, Size::fixed(length))
            }
            ("flatten", Some(list), levels) => {
                let levels = levels.first().map_or(1, |n| number(n).unwrap_or(u64::MAX));
                made(levels as f64, size(list))
            }
            ("lists.range", None, [length]) => {
                made(1.0, Size::fixed(number(length).unwrap_or(u64::MAX)))
            }
            ("reverse", Some(list), []) => made(1.0, size(list)),
            ("distinct", Some(list), []) => made(2.0, squared(size(list))),
            ("sort", Some(list), []) => sorted(size(list), invocation.signature.arguments.first()),
            ("@sortByAssociatedKeys", Some(_), [keys]) => {
                sorted(size(keys), invocation.signature.arguments.get(1))
            }
            _ => return None,
        },
    )
}

/// Sorting compares each key with each other one.
fn sorted(keys: Size, list: Option<&Type>) -> Estimate {
    let element = list.and_then(|list| list.parts().first().copied());
    let of_texts = matches!(element, Some(Type::Text | Type::Bytes));
    made(if of_texts { 2.0 + CHARACTER } else { 2.0 }, squared(keys))
}

fn squared(size: Size) -> Size {
    size.times(size)
}

/// Returns the cost of making a list; its size is that of the work, as in Go.
fn made(of_each: f64, size: Size) -> Estimate {
    let cost = size.cost(of_each).saturating_add(1 + NEW_LIST);
    Estimate::sized(cost, size)
}

/// Returns the number that is written as an operand; a negative one counts as zero.
fn number(operand: &Operand<'_>) -> Option<u64> {
    match operand.tree?.kind {
        Kind::Literal(Literal::Int(number)) => Some(u64::try_from(number).unwrap_or(0)),
        _ => None,
    }
}
