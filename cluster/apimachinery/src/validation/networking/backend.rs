//! Backends of Ingresses.

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::rule::{self, Rule, Rules};

pub(super) const REFERENCE: Rules = &[("kind name", Rule::Name(formats::path_segment))];

pub(super) fn check(backend: &Field<'_>, causes: &mut Causes) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    // `validateIngressBackend`; with both, neither is looked at.
    if resource.is_set() && service.is_set() {
        causes.invalid_as(backend, "", "cannot set both resource and service backends");
    } else if resource.is_set() {
        check_group(&resource, causes);
        rule::check(&resource, REFERENCE, causes);
    } else if service.is_set() {
        causes.check_name(&service.get("name"), formats::dns_label);
        check_port(backend, &service.get("port"), causes);
    } else {
        causes.invalid_as(backend, "", "resource or service backend is required");
    }
}

/// Checks the group in a reference, if there is one.
pub(super) fn check_group(reference: &Field<'_>, causes: &mut Causes) {
    let group = reference.get("apiGroup");
    if group.is_set() {
        causes.check_format(&group, formats::dns_subdomain);
    }
}

fn check_port(backend: &Field<'_>, port: &Field<'_>, causes: &mut Causes) {
    let (name, number) = (port.get("name"), port.get("number"));
    // No pointer in Go, so zero is none.
    let has_number = number.int().unwrap_or(0) != 0;
    match (!name.is_void(), has_number) {
        (true, true) => {
            causes.invalid_as(backend, "", "cannot set both port name & port number");
        }
        (true, false) => causes.check_format(&name, formats::port_name),
        (false, true) => causes.check_between(&number, 1, 65535),
        (false, false) => causes.required(backend, "port name or number is required"),
    }
}
