//! Sources on the node, and objects of the cluster.

use super::options::Options;
use crate::quantity::Quantity;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::paths;
use crate::validation::resources::amount;
use crate::validation::rule::{self, Rule, Rules};

// Within `validateVolumeSource`. `medium` is not validated: the kubelet fails on an unknown one.
pub(super) fn empty_dir(at: &Field<'_>, causes: &mut Causes) {
    let limit = at.get("sizeLimit");
    if limit.is_set() && amount(&limit) < Quantity::ZERO {
        causes.forbidden(&limit, "SizeLimit field must be a valid resource quantity");
    }
}

// `supportedHostPathTypes`: the empty type is one of them, and is listed in the message.
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

pub(super) fn host_path(at: &Field<'_>, causes: &mut Causes) {
    let path = at.get("path");
    if !causes.check_given(&path, "") {
        return;
    }
    // `validateHostPathVolumeSource`. Relative paths pass; only `..` is refused.
    paths::check_no_backsteps(&path, causes);
    causes.check_supported(&at.get("type"), HOST_PATH_TYPES);
}

pub(super) fn local(at: &Field<'_>, causes: &mut Causes) {
    if causes.check_given(&at.get("path"), "") {
        paths::check_no_backsteps(&at.get("path"), causes);
    }
}

pub(super) fn git_repo(at: &Field<'_>, causes: &mut Causes) {
    causes.check_given(&at.get("repository"), "");
    // A directory that leaves the volume would write to the node.
    paths::check_descending(&at.get("directory"), causes);
}

pub(super) fn gce_disk(at: &Field<'_>, causes: &mut Causes) {
    causes.check_given(&at.get("pdName"), "");
    check_partition(at, causes);
}

pub(super) fn aws_disk(at: &Field<'_>, causes: &mut Causes) {
    causes.check_given(&at.get("volumeID"), "");
    check_partition(at, causes);
}

/// Checks a partition number; zero, the whole disk, is not in the message.
// `validateGCEPersistentDiskVolumeSource` and `validateAWSElasticBlockStoreVolumeSource`.
fn check_partition(at: &Field<'_>, causes: &mut Causes) {
    let partition = at.get("partition");
    if partition
        .int()
        .is_some_and(|number| !(0..=255).contains(&number))
    {
        causes.invalid(&partition, "must be between 1 and 255, inclusive");
    }
}

pub(super) fn secret(at: &Field<'_>, causes: &mut Causes) {
    // Here the member is `secretName`, in projected volumes `name`.
    causes.check_given(&at.get("secretName"), "");
    check_files(at, causes);
}

pub(super) fn config_map(at: &Field<'_>, causes: &mut Causes) {
    causes.check_given(&at.get("name"), "");
    check_files(at, causes);
}

fn check_files(at: &Field<'_>, causes: &mut Causes) {
    paths::check_mode(&at.get("defaultMode"), causes);
    for item in at.get("items").items() {
        check_item(&item, causes);
    }
}

const ITEM: Rules = &[("key path", Rule::Given)];

/// Checks which key becomes which file.
// `validateKeyToPath`.
pub(super) fn check_item(item: &Field<'_>, causes: &mut Causes) {
    rule::check(item, ITEM, causes);
    paths::check_local(&item.get("path"), causes);
    paths::check_mode(&item.get("mode"), causes);
}

pub(super) const PULL_POLICY: Rules = &[(
    "pullPolicy",
    Rule::OneOf(&["Always", "IfNotPresent", "Never"]),
)];

pub(super) fn image(at: &Field<'_>, options: Options, causes: &mut Causes) {
    // In templates the reference may be empty, so that tools can fill it in (`ResourceIsPod`).
    if options.is_pod {
        causes.check_given(&at.get("reference"), "");
    }
    rule::check(at, PULL_POLICY, causes);
}
