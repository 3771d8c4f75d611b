//! The cost of operators and of the functions of the language itself.
//!
//! Source: `functionCost` in `checker/cost.go`.

use super::estimator::Estimator;
use super::invocation::{Estimate, Invocation, Operand};
use super::size::Size;
use crate::expressions::types::Type;

/// The cost of reading a character of a text.
pub(super) const CHARACTER: f64 = 0.1;
/// The cost of a character of a regular expression.
pub(super) const PATTERN: f64 = 0.25;

/// Returns the cost of a call, with that of its arguments.
pub(super) fn estimate<'t>(
    estimator: &mut Estimator<'t>,
    invocation: &Invocation<'_, 't>,
) -> Estimate {
    match (invocation.function, invocation.arguments) {
        // The costs of the operands, whichever of them decides.
        ("_&&_" | "_||_", _) => Estimate::of(invocation.sum()),
        ("_?_:_", [_, then, otherwise]) => {
            let size = known(then).union(known(otherwise));
            let entry = estimator.joined_entry(then, otherwise);
            estimator.set_entry(invocation.tree, entry);
            let costs = invocation.costs;
            let cost = costs[0].saturating_add(costs[1].max(costs[2]));
            Estimate::sized(cost, size)
        }
        _ => {
            let Estimate { cost, size } = own(estimator, invocation);
            let cost = cost.saturating_add(invocation.sum());
            Estimate { cost, size }
        }
    }
}

/// Returns the cost of an operator itself, without its arguments.
fn own<'t>(estimator: &mut Estimator<'t>, invocation: &Invocation<'_, 't>) -> Estimate {
    let parameter = invocation.signature.arguments.first();
    let is_text = matches!(parameter, Some(Type::Text | Type::Bytes));
    match (invocation.function, invocation.target, invocation.arguments) {
        ("format", Some(target), _) => Estimate::of(known(target).cost(CHARACTER)),
        ("bytes", None, [text]) if parameter == Some(&Type::Text) => {
            // A character has up to four bytes. The product is not guarded, as in Go.
            let size = known(text);
            let result = Size::up_to(size.least, size.most.wrapping_mul(4));
            Estimate::sized(size.cost(CHARACTER), result)
        }
        ("string", None, [bytes]) if parameter == Some(&Type::Bytes) => {
            let size = known(bytes);
            let result = Size::up_to(size.least / 4, size.most);
            Estimate::sized(size.cost(CHARACTER), result)
        }
        ("strings.quote", None, [text]) => {
            // Each character may be escaped, and there are two quotes.
            let size = known(text);
            let most = size.most.wrapping_mul(2).wrapping_add(2);
            let result = Size::up_to(size.least.wrapping_add(2), most);
            Estimate::sized(size.cost(CHARACTER), result)
        }
        ("startsWith" | "endsWith", _, [text]) => Estimate::of(known(text).cost(CHARACTER)),
        ("@in", None, [_, list]) if is_list(invocation.signature.arguments.get(1)) => {
            Estimate::of(known(list).cost(1.0))
        }
        ("matches", Some(text), [pattern]) => Estimate::of(matching(known(text), known(pattern))),
        ("contains", Some(text), [part]) => {
            let cost = known(text).cost(CHARACTER);
            Estimate::of(cost.saturating_mul(known(part).cost(CHARACTER)))
        }
        ("_+_", None, [left, right]) if is_text || is_list(parameter) => {
            let size = known(left).plus(known(right));
            let entry = estimator.joined_entry(left, right);
            estimator.set_entry(invocation.tree, entry);
            // Lists are joined without being copied.
            let cost = if is_text { size.cost(CHARACTER) } else { 1 };
            Estimate::sized(cost, size)
        }
        ("_<_" | "_>_" | "_<=_" | "_>=_", None, [left, right]) if is_text => {
            Estimate::of(comparison(left, right))
        }
        ("_==_" | "_!=_", None, [left, right]) => Estimate::of(comparison(left, right)),
        _ => Estimate::of(1),
    }
}

/// Returns the cost of applying a regular expression to a text.
pub(super) fn matching(text: Size, pattern: Size) -> u64 {
    // One more character, because an empty text is not for free.
    let cost = text.plus(Size::fixed(1)).cost(CHARACTER);
    cost.saturating_mul(pattern.cost(PATTERN))
}

/// Returns the cost of a comparison, which ends with the smaller value.
fn comparison(left: &Operand<'_>, right: &Operand<'_>) -> u64 {
    let most = known(left).most.min(known(right).most);
    Size::fixed(most).cost(CHARACTER)
}

fn known(operand: &Operand<'_>) -> Size {
    operand.size.unwrap_or(Size::UNKNOWN)
}

fn is_list(kind: Option<&Type>) -> bool {
    matches!(kind, Some(Type::List(_)))
}
