//! Strategic merge patch: merges items of lists by their keys.
//!
//! Source: `k8s.io/apimachinery/pkg/util/strategicpatch`.

mod items;
mod lists;
mod lookup;
mod maps;
mod order;

#[cfg(test)]
mod tests;

pub(super) use maps::apply;
