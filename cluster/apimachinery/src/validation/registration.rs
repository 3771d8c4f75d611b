//! APIServices.
//!
//! Source: `k8s.io/kube-aggregator/pkg/apis/apiregistration/validation`.

use super::causes::Causes;
use super::context::{Context, Part};
use super::field::Field;
use super::formats;
use crate::go_text;

pub(super) fn api_service(context: &Context<'_>, causes: &mut Causes) {
    // `ValidateAPIServiceStatusUpdate`: of the conditions, only whether they hold is checked.
    if context.updates(Part::Status) {
        for condition in context.get("status").get("conditions").items() {
            causes.check_supported(&condition.get("status"), &["True", "False", "Unknown"]);
        }
        return;
    }
    let spec = context.get("spec");
    let (group, version) = (spec.get("group"), spec.get("version"));
    let required = format!("{}.{}", version.text(), group.text());
    let name = context.get("metadata").get("name");
    // The checks of metadata report a name that is missing or no path segment; the messages exclude each other in Go.
    if !name.is_void() && name.text() != required && formats::path_segment(name.text()).is_empty() {
        let required = go_text::quoted(&required);
        let detail = format!("must be `spec.version+\".\"+spec.group`: {required}");
        causes.invalid(&name, &detail);
    }
    if !group.is_void() {
        causes.check_format(&group, formats::dns_subdomain);
    // The core group has no name; its APIService is called `v1.`.
    } else if version.text() != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        causes.required(&group, detail);
    }
    causes.check_format(&version, formats::dns_1035_label);
    // Both bounds are inclusive, although the message says "less than".
    check_priority(&spec.get("groupPriorityMinimum"), 20000, causes);
    check_priority(&spec.get("versionPriority"), 1000, causes);
    check_server(&spec, causes);
}

fn check_priority(at: &Field<'_>, most: i64, causes: &mut Causes) {
    // A missing priority is zero in Go, and zero is refused: both priorities have to be given.
    let number = at.int().unwrap_or(0);
    if !(1..=most).contains(&number) {
        let detail = format!("must be positive and less than {most}");
        causes.invalid_as(at, number, &detail);
    }
}

/// Checks which service serves the API; without one it is the API server itself.
fn check_server(spec: &Field<'_>, causes: &mut Causes) {
    let service = spec.get("service");
    let (bundle, insecure) = (spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    let is_insecure = spec.is_true("insecureSkipTLSVerify");
    if !service.is_set() {
        if !bundle.is_void() {
            let shown = format!(
                "{} bytes",
                // Go has decoded the bundle and shows its size; every four characters of base64 are three bytes.
                bundle.text().trim_end_matches('=').len() * 3 / 4
            );
            causes.invalid_as(&bundle, shown, "local APIServices may not have a caBundle");
        }
        if is_insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            causes.invalid(&insecure, detail);
        }
        return;
    }
    // Only whether namespace and name are there counts; no form of them is checked.
    causes.check_given(&service.get("namespace"), "");
    causes.check_given(&service.get("name"), "");
    let port = service.get("port");
    let number = port.int().unwrap_or(0);
    if !(1..=65535).contains(&number) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.invalid_as(&port, number, detail);
    }
    if is_insecure && !bundle.is_void() {
        causes.invalid(&insecure, "may not be true if caBundle is present");
    }
}
