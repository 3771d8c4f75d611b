//! IngressClasses.

use super::backend;
use crate::validation::causes::Causes;
use crate::validation::context::Context;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::paths;
use crate::validation::rule;

pub(in crate::validation) fn ingress_class(context: &Context<'_>, causes: &mut Causes) {
    let spec = context.get("spec");
    let controller = spec.get("controller");
    if let Some(old) = context.old("spec") {
        causes.check_immutable(&controller, &old.get("controller"));
    }
    // `maxLenIngressClassController`.
    if controller.text().len() > 250 {
        causes.too_long(&controller, 250);
    }
    paths::check_domain_prefixed(&controller, causes);
    let parameters = spec.get("parameters");
    if parameters.is_set() {
        check_parameters(&parameters, causes);
    }
}

fn check_parameters(at: &Field<'_>, causes: &mut Causes) {
    backend::check_group(at, causes);
    rule::check(at, backend::REFERENCE, causes);
    let (scope, namespace) = (at.get("scope"), at.get("namespace"));
    match scope.text() {
        // Defaults set it, so it is only missing in objects that were not defaulted.
        _ if !scope.is_set() => causes.required(&scope, ""),
        "Namespace" if !namespace.is_set() => {
            causes.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => causes.check_format(&namespace, formats::dns_label),
        "Cluster" if namespace.is_set() => {
            causes.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        "Cluster" => {}
        _ => causes.unsupported(&scope, &["Cluster", "Namespace"]),
    }
}
