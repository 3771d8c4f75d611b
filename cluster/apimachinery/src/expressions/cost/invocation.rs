//! What is known of a call when its cost is estimated.

use super::path::Path;
use super::size::Size;
use crate::expressions::functions::Signature;
use crate::expressions::tree::Tree;
use crate::expressions::types::Type;

/// A value that a function is called with.
pub(super) struct Operand<'t> {
    /// The part of the expression; none for the elements of a list.
    pub(super) tree: Option<&'t Tree>,
    pub(super) path: Path<'t>,
    pub(super) kind: &'t Type,
    pub(super) size: Option<Size>,
}

/// A call of one signature of a function.
pub(super) struct Invocation<'c, 't> {
    pub(super) tree: &'t Tree,
    pub(super) function: &'c str,
    pub(super) signature: &'static Signature,
    pub(super) target: Option<&'c Operand<'t>>,
    pub(super) arguments: &'c [Operand<'t>],
    /// The costs of the arguments.
    pub(super) costs: &'c [u64],
}

/// The cost of a call, and the size of its result, if it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
}

impl Estimate {
    pub(super) fn of(cost: u64) -> Self {
        Self { cost, size: None }
    }

    pub(super) fn sized(cost: u64, size: Size) -> Self {
        let size = Some(size);
        Self { cost, size }
    }
}

impl Invocation<'_, '_> {
    /// Returns the cost of all arguments.
    pub(super) fn sum(&self) -> u64 {
        self.costs.iter().copied().fold(0, u64::saturating_add)
    }
}
