//! The ConfigMaps that a Deployment uses, and their content.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec};
use lariat::kube::ResourceExt;
use lariat::prelude::*;

/// Returns the ConfigMaps that pods of a Deployment mount, or use for environment variables.
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

/// The record of a Deployment: the ConfigMaps it uses, with a checksum of each content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Note(BTreeMap<String, String>);

impl Note {
    /// Parses a record; invalid entries are left out, as if the ConfigMap had not been used.
    pub(super) fn parse(text: &str) -> Self {
        let parts = text.split(',').filter_map(|part| part.split_once('='));
        Self(parts.map(|(name, sum)| (name.into(), sum.into())).collect())
    }

    /// Adds a ConfigMap, which need not exist.
    pub(super) fn add(&mut self, key: &ObjectKey, config_map: Option<&ConfigMap>) {
        self.0.insert(key.name().to_owned(), checksum(config_map));
    }

    /// Returns the ConfigMaps whose content differs from an earlier record that has them too.
    pub(super) fn changed_since<'a>(&'a self, earlier: &Self) -> Vec<&'a str> {
        let changed = self.0.iter().filter(|(name, checksum)| {
            let known = earlier.0.get(*name);
            known.is_some_and(|known| known != *checksum)
        });
        changed.map(|(name, _)| name.as_str()).collect()
    }
}

/// The form of the annotation: `common=cbf29ce484222325,web=…`.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, checksum)) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{name}={checksum}")?;
        }
        Ok(())
    }
}

/// Returns a checksum (FNV-1a) that is the same in every version of the program: if it were not, an update would
/// restart everything.
fn checksum(config_map: Option<&ConfigMap>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    // Includes the lengths, so that moving text from one value to the next changes the checksum.
    let mut add = |bytes: &[u8]| {
        for byte in bytes.len().to_le_bytes().iter().chain(bytes) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    if let Some(config_map) = config_map {
        for (name, value) in config_map.data.iter().flatten() {
            add(name.as_bytes());
            add(value.as_bytes());
        }
        for (name, value) in config_map.binary_data.iter().flatten() {
            add(name.as_bytes());
            add(&value.0);
        }
    }
    format!("{hash:016x}")
}
