//! Pods, and templates of them.

use serde_json::Value;

use super::members::{each, inner, made, set, text};
use super::{amounts, container, pod_resources};
use crate::object::Object;

pub(super) fn pod(object: &mut Object) {
    let Some(spec) = made(object, "spec") else {
        return;
    };
    // `Convert_v1_Pod_To_core_Pod`, which leaves templates as they are too.
    let period = spec.get("terminationGracePeriodSeconds");
    if period
        .and_then(Value::as_i64)
        .is_some_and(|period| period < 0)
    {
        spec.insert("terminationGracePeriodSeconds".into(), 1.into());
    }
    // `SetDefaults_Pod`. Templates do not get this, so that adding a default changes no template and starts no
    // rollout.
    set(spec, "enableServiceLinks", true);
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for containers in ["containers", "initContainers"] {
        each(spec, containers, |each_container| {
            container::requests(each_container);
            // `defaultHostNetworkPorts`: in the network of the host the two ports are the same one.
            if host_network {
                each(each_container, "ports", |port| {
                    let container_port = port.get("containerPort").cloned().unwrap_or_default();
                    set(port, "hostPort", container_port);
                });
            }
        });
    }
    // After the requests of containers, which it sums up.
    pod_resources::fill(spec);
    fill_spec(spec);
}

/// Fills in a template in a member.
pub(super) fn template(object: &mut Object, name: &str) {
    if let Some(template) = made(object, name) {
        // No pointer in Go, so written even if empty.
        made(template, "metadata");
        if let Some(spec) = made(template, "spec") {
            fill_spec(spec);
        }
    }
}

fn fill_spec(spec: &mut Object) {
    // `SetDefaults_PodSpec`.
    set(spec, "restartPolicy", "Always");
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "schedulerName", "default-scheduler");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "securityContext", Object::new());
    // The older name of the member is kept up for old clients.
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount").to_owned(),
        name => name.to_owned(),
    };
    if !account.is_empty() {
        spec.insert("serviceAccountName".into(), account.clone().into());
        spec.insert("serviceAccount".into(), account.into());
    }
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, containers, container::container);
    }
    each(spec, "volumes", volume);
    amounts::round(spec, &["overhead"]);
    amounts::round_resources(spec);
}

/// The default mode of files of a volume: 0644.
const DEFAULT_MODE: i32 = 0o644;

fn volume(volume: &mut Object) {
    // `SetDefaults_Volume`: a volume without a source is an empty directory.
    if volume.keys().all(|member| member == "name") {
        volume.insert("emptyDir".into(), Object::new().into());
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = inner(volume, source) {
            // Go has a function for each of these four sources; they say the same.
            set(source, "defaultMode", DEFAULT_MODE);
            each(source, "items", container::field_reference);
            each(source, "sources", |each_source| {
                if let Some(token) = inner(each_source, "serviceAccountToken") {
                    set(token, "expirationSeconds", 3600);
                }
                if let Some(downward) = inner(each_source, "downwardAPI") {
                    each(downward, "items", container::field_reference);
                }
            });
        }
    }
    if let Some(image) = inner(volume, "image") {
        let policy = container::pull_policy(text(image, "reference"));
        set(image, "pullPolicy", policy);
    }
    let claim = inner(volume, "ephemeral").and_then(|source| inner(source, "volumeClaimTemplate"));
    if let Some(spec) = claim.and_then(|claim| inner(claim, "spec")) {
        set(spec, "volumeMode", "Filesystem");
        amounts::round_resources(spec);
    }
    source(volume);
}

/// Fills in the sources that volumes of Pods and PersistentVolumes have in common.
pub(super) fn source(holder: &mut Object) {
    if let Some(path) = inner(holder, "hostPath") {
        set(path, "type", "");
    }
    let texts: [(&str, &[(&str, &str)]); 4] = [
        ("iscsi", &[("iscsiInterface", "default")]),
        (
            "rbd",
            &[
                ("pool", "rbd"),
                ("user", "admin"),
                ("keyring", "/etc/ceph/keyring"),
            ],
        ),
        (
            "scaleIO",
            &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")],
        ),
        (
            "azureDisk",
            &[
                ("cachingMode", "ReadWrite"),
                ("fsType", "ext4"),
                ("kind", "Shared"),
            ],
        ),
    ];
    for (name, members) in texts {
        if let Some(source) = inner(holder, name) {
            members
                .iter()
                .for_each(|(member, text)| set(source, member, *text));
        }
    }
    if let Some(disk) = inner(holder, "azureDisk") {
        set(disk, "readOnly", false);
    }
}
