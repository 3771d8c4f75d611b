//! Which ConfigMaps a Deployment uses, and what is in them.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec};
use lariat::kube::ResourceExt;
use lariat::prelude::*;

/// Returns the ConfigMaps that pods of a Deployment mount, or take environment variables from.
pub(super) fn config_maps_of(deployment: &Deployment) -> BTreeSet<ObjectKey> {
    let namespace = deployment.namespace().unwrap_or_default();
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let names = pod
        .into_iter()
        .flat_map(|pod| mounted(pod).chain(read(pod)));
    names
        .map(|name| ObjectKey::namespaced(&namespace, name))
        .collect()
}

fn mounted(pod: &PodSpec) -> impl Iterator<Item = &str> {
    let volumes = pod.volumes.iter().flatten();
    let whole = volumes
        .clone()
        .filter_map(|volume| volume.config_map.as_ref());
    let projected = volumes.filter_map(|volume| volume.projected.as_ref());
    let parts = projected.flat_map(|projected| projected.sources.iter().flatten());
    let parts = parts.filter_map(|part| part.config_map.as_ref());
    whole
        .map(|source| &*source.name)
        .chain(parts.map(|source| &*source.name))
}

fn read(pod: &PodSpec) -> impl Iterator<Item = &str> {
    let containers = pod.init_containers.iter().flatten().chain(&pod.containers);
    containers.flat_map(|container: &Container| {
        let sources = container.env_from.iter().flatten();
        let whole = sources.filter_map(|source| Some(&*source.config_map_ref.as_ref()?.name));
        let variables = container.env.iter().flatten();
        let single = variables.filter_map(|variable| {
            let source = variable.value_from.as_ref()?;
            Some(&*source.config_map_key_ref.as_ref()?.name)
        });
        whole.chain(single)
    })
}

/// A checksum (FNV-1a) that is the same in every version of the program: if it were not, an update would restart
/// everything.
pub(super) struct Checksum(u64);

impl Checksum {
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a ConfigMap, which need not exist.
    pub(super) fn add(&mut self, key: &ObjectKey, config_map: Option<&ConfigMap>) {
        self.bytes(key.name().as_bytes());
        let Some(config_map) = config_map else {
            return;
        };
        for (name, value) in config_map.data.iter().flatten() {
            self.bytes(name.as_bytes());
            self.bytes(value.as_bytes());
        }
        for (name, value) in config_map.binary_data.iter().flatten() {
            self.bytes(name.as_bytes());
            self.bytes(&value.0);
        }
    }

    /// Adds bytes and how many they are, so that what moves from one text to the next makes a difference.
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes.len().to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn text(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// What is noted about a Deployment: the ConfigMaps it uses, and the checksum of their content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note(String);

impl Note {
    pub(super) fn new(used: &BTreeSet<ObjectKey>, checksum: &Checksum) -> Self {
        let names: Vec<&str> = used.iter().map(ObjectKey::name).collect();
        Self(format!("{}:{}", names.join(","), checksum.text()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether another note is about the same ConfigMaps.
    pub(super) fn has_names_of(&self, other: &str) -> bool {
        names(&self.0) == names(other)
    }
}

fn names(note: &str) -> Option<&str> {
    note.split_once(':').map(|(names, _)| names)
}
