//! How much a run does.

use crate::bench::Run;

/// Returns how many connections or watchers a run has, and how much there is to do.
pub(crate) fn sizes(run: &Run) -> (usize, usize) {
    (run.handlers.unwrap_or(1), run.n.unwrap_or(1))
}
