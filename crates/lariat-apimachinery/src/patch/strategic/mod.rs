//! Strategic merge patch: merges items of lists by their keys.
//!
//! Source: `k8s.io/apimachinery/pkg/util/strategicpatch`.

mod errors;
mod lists;
mod maps;

#[cfg(test)]
mod tests;

pub(super) use maps::apply;
