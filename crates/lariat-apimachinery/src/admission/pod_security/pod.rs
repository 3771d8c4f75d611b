//! What the checks look at: a Pod, or the template of one.

use serde_json::Value;

use crate::kinds::Resource;
use crate::object::Object;

/// A Pod, or the template of one.
#[derive(Debug, Clone, Copy)]
pub struct Pod<'a> {
    pub(super) metadata: &'a Value,
    pub(super) spec: &'a Value,
}

impl<'a> Pod<'a> {
    /// Returns the Pod that an object is or makes; `None` if it has no template, or its kind none.
    #[must_use]
    pub fn of(resource: &Resource, object: &'a Object) -> Option<Self> {
        if resource.rules.custom {
            return None;
        }
        let spec = || object.get("spec");
        match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "pods") => Some(Self::of_pod(object)),
            ("", "podtemplates") => Self::of_template(object.get("template")),
            ("", "replicationcontrollers")
            | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
            | ("batch", "jobs") => Self::of_template(spec()?.get("template")),
            ("batch", "cronjobs") => {
                Self::of_template(spec()?.get("jobTemplate")?.get("spec")?.get("template"))
            }
            _ => None,
        }
    }

    /// Returns a Pod.
    #[must_use]
    pub fn of_pod(pod: &'a Object) -> Self {
        Self {
            metadata: pod.get("metadata").unwrap_or(&Value::Null),
            spec: pod.get("spec").unwrap_or(&Value::Null),
        }
    }

    fn of_template(template: Option<&'a Value>) -> Option<Self> {
        let template = template.filter(|template| template.is_object())?;
        Some(Self {
            metadata: &template["metadata"],
            spec: &template["spec"],
        })
    }

    /// Returns all containers, in the order in which errors name them.
    pub(super) fn containers(self) -> impl Iterator<Item = Container<'a>> {
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |list| self.spec[list].as_array().into_iter().flatten())
            .map(Container)
    }

    /// Returns the names of the containers of which something holds.
    pub(super) fn named(self, holds: impl Fn(Container<'a>) -> bool) -> Vec<&'a str> {
        let containers = self.containers().filter(|container| holds(*container));
        containers.map(Container::name).collect()
    }

    /// Returns the security context of the Pod itself.
    pub(super) fn security(self) -> &'a Value {
        &self.spec["securityContext"]
    }

    /// Returns the annotations.
    pub(super) fn annotations(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let annotations = self.metadata["annotations"].as_object();
        annotations
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// Returns the volumes.
    pub(super) fn volumes(self) -> impl Iterator<Item = &'a Value> {
        self.spec["volumes"].as_array().into_iter().flatten()
    }

    /// Returns whether the containers are those of Windows, which has no such permissions.
    pub(super) fn is_of_windows(self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// Returns whether users of the containers are none of the host's.
    pub(super) fn has_own_users(self) -> bool {
        self.spec["hostUsers"] == false
    }
}

/// A container of any sort.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'a>(pub(super) &'a Value);

impl<'a> Container<'a> {
    pub(super) fn name(self) -> &'a str {
        text(&self.0["name"])
    }

    pub(super) fn security(self) -> &'a Value {
        &self.0["securityContext"]
    }
}

/// Returns a text, which is empty where there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the texts of a list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}
