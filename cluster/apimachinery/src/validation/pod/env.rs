//! Environment variables of containers.

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::rule::{self, Rule, Rules};
use crate::validation::volumes::{check_field_reference, check_resource_reference};
use crate::validation::{formats, paths};

/// The fields of a Pod that a variable can show.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

pub(super) fn check(container: &Field<'_>, causes: &mut Causes) {
    for variable in container.get("env").items() {
        causes.check_name(&variable.get("name"), formats::env_name);
        check_source(&variable, causes);
    }
    let list = container.get("envFrom");
    for source in list.items() {
        check_whole(&list, &source, causes);
    }
}

/// Checks the source of all variables of an object.
///
/// Causes about the choice of a source are at the list.
fn check_whole(list: &Field<'_>, source: &Field<'_>, causes: &mut Causes) {
    let prefix = source.get("prefix");
    if !prefix.is_void() {
        causes.check_format(&prefix, formats::env_name);
    }
    let given = source.given(&["configMapRef", "secretRef"]);
    for member in &given {
        let name = source.get(member).get("name");
        if causes.check_given(&name, "") {
            // Go calls the check for names with the flag for prefixes, so a dash at the end is accepted.
            let masked = formats::masked(name.text());
            for message in formats::dns_subdomain(&masked) {
                causes.invalid(&name, &message);
            }
        }
    }
    match given.len() {
        0 => causes.invalid_as(
            list,
            "",
            "must specify one of: `configMapRef` or `secretRef`",
        ),
        1 => {}
        _ => causes.invalid_as(
            list,
            "",
            "may not have more than one field specified at a time",
        ),
    }
}

const KEY: Rules = &[("key", Rule::Name(formats::config_key))];

const FILE: Rules = &[
    ("key", Rule::Name(formats::env_name)),
    ("volumeName", Rule::Name(formats::dns_label)),
    ("path", Rule::Given),
];

fn check_source(variable: &Field<'_>, causes: &mut Causes) {
    let from = variable.get("valueFrom");
    if !from.is_set() {
        return;
    }
    let given = from.given(&[
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ]);
    for member in &given {
        let source = from.get(member);
        match *member {
            "fieldRef" => check_field_reference(&source, FIELDS, causes),
            "resourceFieldRef" => check_resource_reference(&source, false, causes),
            "fileKeyRef" => {
                rule::check(&source, FILE, causes);
                paths::check_no_backsteps(&source.get("path"), causes);
            }
            _ => {
                causes.check_format(&source.get("name"), formats::dns_subdomain);
                rule::check(&source, KEY, causes);
            }
        }
    }
    let detail = match given.len() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        // `validateEnvVarValueFrom`: with a value and several sources, only this is reported.
        _ if !variable.get("value").is_void() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.invalid_as(&from, "", detail);
}

/// Checks that variables from files are in volumes that are empty at first.
pub(super) fn check_files(container: &Field<'_>, volumes: &Field<'_>, causes: &mut Causes) {
    for variable in container.get("env").items() {
        let file = variable.get("valueFrom").get("fileKeyRef");
        if !file.is_set() {
            continue;
        }
        let name = file.get("volumeName");
        // The last volume of a name counts.
        let volume = volumes
            .items()
            .filter(|each| each.text_of("name") == name.text());
        match volume.last() {
            None => causes.not_found(&name, name.text()),
            // A file of another source could change while the container runs.
            Some(volume) if !volume.has("emptyDir") => {
                causes.invalid(&name, "referenced volume must be of type emptyDir");
            }
            Some(_) => {}
        }
    }
}
