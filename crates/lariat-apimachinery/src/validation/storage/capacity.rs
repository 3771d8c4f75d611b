//! CSIStorageCapacities.

use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::formats;
use crate::validation::labels::{self, SelectorOptions};
use crate::validation::resources;

pub(in crate::validation) fn storage_capacity(context: &Context<'_>, causes: &mut Causes) {
    let (topology, class) = (context.get("nodeTopology"), context.get("storageClassName"));
    if let (Some(old_topology), Some(old_class)) =
        (context.old("nodeTopology"), context.old("storageClassName"))
    {
        causes.check_immutable(&topology, &old_topology);
        causes.check_immutable(&class, &old_class);
    }
    let options = SelectorOptions {
        any_values: context
            .old("nodeTopology")
            .is_some_and(|old| labels::has_odd_values(&old)),
    };
    labels::check_selector(&topology, options, causes);
    causes.check_format(&class, formats::dns_subdomain);
    let capacity = context.get("capacity");
    if capacity.is_set() {
        resources::check_not_negative(&capacity, causes);
    }
}
