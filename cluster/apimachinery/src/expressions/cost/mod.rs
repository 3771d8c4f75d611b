//! The cost of an expression in the worst case, before it is ever evaluated.
//!
//! The units are those of the server, which refuses rules whose worst case is too expensive. Values have sizes: the
//! number of characters, elements or entries. Where the server's estimate is surprising, so is this one, because what
//! it refuses must be the same.
//!
//! Source: `checker/cost.go` of cel-go, and `k8s.io/apiserver/pkg/cel/library/cost.go`.

mod calls;
mod dimensions;
mod estimator;
mod invocation;
mod library;
mod lists;
mod loops;
mod operators;
mod path;
mod size;

pub(crate) use dimensions::Dimensions;

use super::facts::Facts;
use super::tree::Tree;
use estimator::Estimator;

/// The sizes of the variables of an expression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variables<'a> {
    pub(crate) dimensions: &'a Dimensions,
    /// The only variable that has them; without one all variables have.
    pub(crate) only: Option<&'static str>,
}

/// Returns the highest cost of an expression.
pub(super) fn estimate(tree: &Tree, facts: &Facts, variables: Variables<'_>) -> u64 {
    Estimator::new(facts, variables).cost(tree)
}
