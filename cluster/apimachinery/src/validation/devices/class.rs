//! DeviceClasses.

use super::config::check_config;
use super::lists::check_list;
use super::request::MOST;
use super::selectors::check_selectors;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::resources::is_extended;

pub(in crate::validation) fn device_class(context: &Context<'_>, causes: &mut Causes) {
    let (spec, old) = (context.get("spec"), context.old("spec"));
    // The limit on the length came later, so what is stored may be longer.
    let stored = old.is_some_and(|old| old.member("config") == spec.member("config"));
    check_selectors(&spec.get("selectors"), causes);
    check_list(&spec.get("config"), MOST, causes, |config, causes| {
        check_config(config, stored, causes);
    });
    let resource = spec.get("extendedResourceName");
    if resource.is_set() && !is_extended(resource.text()) {
        causes.invalid(&resource, "must be a valid extended resource name");
    }
}
