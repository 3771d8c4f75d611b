//! Discovery: which groups, versions and resources there are.

mod aggregated;
mod documents;
mod order;
mod shapes;
mod subresources;

pub(crate) use aggregated::{AGGREGATED, aggregated, prefers_aggregated};
pub(crate) use documents::{core_versions, group, groups, resources, unserved, version};
pub(super) use subresources::{Subresource, subresources};
