//! CSIStorageCapacities.

use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::formats;
use crate::validation::labels::{self, SelectorOptions};
use crate::validation::resources;

pub(in crate::validation) fn storage_capacity(context: &Context<'_>, causes: &mut Causes) {
    let (topology, class) = (context.get("nodeTopology"), context.get("storageClassName"));
    let options = SelectorOptions {
        any_values: context
            .old("nodeTopology")
            .is_some_and(|old| labels::has_odd_values(&old)),
    };
    labels::check_selector(&topology, options, causes);
    // `ValidateCSIStorageCapacity` has no "required" here: an empty class breaks the form of names.
    causes.check_format(&class, formats::dns_subdomain);
    let capacity = context.get("capacity");
    // Without a capacity nothing is known about it, which is not the same as none. `maximumVolumeSize` is not
    // validated.
    if capacity.is_set() {
        resources::check_not_negative(&capacity, causes);
    }
    if let (Some(old_topology), Some(old_class)) =
        (context.old("nodeTopology"), context.old("storageClassName"))
    {
        // The two are the input of the driver's `GetCapacity`; another input is another object. Only `capacity` and
        // `maximumVolumeSize` change.
        causes.check_immutable_selector(&topology, &old_topology);
        causes.check_immutable(&class, &old_class);
    }
}
