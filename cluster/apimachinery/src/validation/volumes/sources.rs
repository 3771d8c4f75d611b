//! The sources of volumes, of which each volume has one.

use super::options::Options;
use super::{downward, local, network, projected};
use crate::validation::causes::Causes;
use crate::validation::claims;
use crate::validation::field::Field;
use crate::validation::rule::{self, Rule, Rules};

/// One source: its member, and the check of it.
struct Source {
    member: &'static str,
    /// The name in the paths of causes, where it differs.
    shown: &'static str,
    /// The name when it is one source too many, where it differs.
    refused: &'static str,
    check: Check,
}

#[derive(Clone, Copy)]
enum Check {
    Rules(Rules),
    Run(fn(&Field<'_>, &mut Causes)),
    WithOptions(fn(&Field<'_>, Options, &mut Causes)),
}

const fn source(member: &'static str, check: Check) -> Source {
    Source {
        member,
        shown: member,
        refused: member,
        check,
    }
}

const fn rules(member: &'static str, rules: Rules) -> Source {
    source(member, Check::Rules(rules))
}

const fn run(member: &'static str, check: fn(&Field<'_>, &mut Causes)) -> Source {
    source(member, Check::Run(check))
}

const GCE: Source = Source {
    // `validateVolumeSource` names it so for what is wrong within it, but `gcePersistentDisk` when it is one too many.
    shown: "persistentDisk",
    ..run("gcePersistentDisk", local::gce_disk)
};
const CEPH: Source = Source {
    // The other way around: `cephfs` for what is wrong within.
    refused: "cephFS",
    ..rules("cephfs", &[("monitors", Rule::Given)])
};
const GLUSTER: Rules = &[("endpoints path", Rule::Given)];
const RBD: Source = rules("rbd", &[("monitors image", Rule::Given)]);
const VSPHERE: Source = rules("vsphereVolume", &[("volumePath", Rule::Given)]);
const PHOTON: Source = rules("photonPersistentDisk", &[("pdID", Rule::Given)]);
const PORTWORX: Source = rules("portworxVolume", &[("volumeID", Rule::Given)]);
const SCALE_IO: Source = rules("scaleIO", &[("gateway system volumeName", Rule::Given)]);

/// The sources of a Pod's volumes, in the order in which they count.
// The order decides which source is checked, and which ones are too many: it is that of Go's `if` statements.
const OF_PODS: &[Source] = &[
    run("emptyDir", local::empty_dir),
    run("hostPath", local::host_path),
    run("gitRepo", local::git_repo),
    GCE,
    run("awsElasticBlockStore", local::aws_disk),
    run("secret", local::secret),
    run("nfs", network::nfs),
    run("iscsi", network::iscsi),
    rules("glusterfs", GLUSTER),
    run("flocker", network::flocker),
    rules("persistentVolumeClaim", &[("claimName", Rule::Given)]),
    RBD,
    run("cinder", |at, causes| {
        network::cinder(at, &["name"], causes)
    }),
    CEPH,
    run("quobyte", network::quobyte),
    Source {
        // A typo in Go that clients see.
        refused: "downwarAPI",
        ..run("downwardAPI", downward::volume)
    },
    run("fc", network::fibre_channel),
    run("flexVolume", network::flex),
    run("configMap", local::config_map),
    rules("azureFile", &[("secretName shareName", Rule::Given)]),
    VSPHERE,
    PHOTON,
    PORTWORX,
    run("azureDisk", network::azure_disk),
    run("storageos", |at, causes| {
        network::storage_os(at, &["name"], causes)
    }),
    source("projected", Check::WithOptions(projected::volume)),
    SCALE_IO,
    run("csi", network::csi_inline),
    run("ephemeral", claims::check_ephemeral),
    source("image", Check::WithOptions(local::image)),
];

/// The sources of PersistentVolumes, in the order in which they count.
// `ValidatePersistentVolumeSpec`, which has an order of its own.
const PERSISTENT: &[Source] = &[
    run("hostPath", local::host_path),
    GCE,
    run("awsElasticBlockStore", local::aws_disk),
    run("glusterfs", network::gluster_persistent),
    run("flocker", network::flocker),
    run("nfs", network::nfs),
    RBD,
    run("quobyte", network::quobyte),
    CEPH,
    run("iscsi", network::iscsi_persistent),
    run("cinder", |at, causes| {
        network::cinder(at, &["name", "namespace"], causes)
    }),
    run("fc", network::fibre_channel),
    run("flexVolume", network::flex),
    run("azureFile", network::azure_file_persistent),
    VSPHERE,
    PHOTON,
    PORTWORX,
    run("azureDisk", network::azure_disk),
    SCALE_IO,
    run("local", local::local),
    run("storageos", |at, causes| {
        network::storage_os(at, &["name", "namespace"], causes)
    }),
    run("csi", network::csi_persistent),
];

/// Checks the source of a Pod's volume.
pub(in crate::validation) fn check_pod(volume: &Field<'_>, options: Options, causes: &mut Causes) {
    check_one(volume, OF_PODS, options, causes);
}

/// Checks the source of a PersistentVolume, which its spec has.
pub(in crate::validation) fn check_persistent(spec: &Field<'_>, causes: &mut Causes) {
    check_one(spec, PERSISTENT, Options::default(), causes);
}

/// Checks that there is one source, and its members.
fn check_one(at: &Field<'_>, sources: &[Source], options: Options, causes: &mut Causes) {
    let mut given = sources.iter().filter(|source| at.has(source.member));
    let Some(first) = given.next() else {
        causes.required(at, "must specify a volume type");
        return;
    };
    // Only the first source is checked. What is wrong in the others shows after they are removed.
    first.check(at, options, causes);
    for other in given {
        // In `ValidatePersistentVolumeSpec` the block of `flexVolume` lacks the test for other sources, so it is
        // checked and not refused. `emptyDir` tells the two tables apart.
        if other.member == "flexVolume" && !sources.iter().any(|each| each.member == "emptyDir") {
            other.check(at, options, causes);
        } else {
            let detail = "may not specify more than 1 volume type";
            causes.forbidden(&at.get(other.refused), detail);
        }
    }
}

impl Source {
    fn check(&self, volume: &Field<'_>, options: Options, causes: &mut Causes) {
        // The path has the shown name, the value is read from the member.
        let at = volume.get(self.shown).with(volume.member(self.member));
        match self.check {
            Check::Rules(rules) => rule::check(&at, rules, causes),
            Check::Run(check) => check(&at, causes),
            Check::WithOptions(check) => check(&at, options, causes),
        }
    }
}

/// Returns how many sources a Pod's volume has.
pub(in crate::validation) fn count(volume: &Field<'_>) -> usize {
    let given = OF_PODS.iter().filter(|source| volume.has(source.member));
    given.count()
}

/// Returns the sources of PersistentVolumes, by member.
pub(in crate::validation) fn persistent_members() -> impl Iterator<Item = &'static str> {
    PERSISTENT.iter().map(|source| source.member)
}
