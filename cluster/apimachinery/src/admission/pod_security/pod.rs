//! The object of the checks, a Pod or the template of one, and which of its changes are checked.

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
    /// Returns a Pod, or the Pod template of a workload.
    ///
    /// `None` for other kinds, and for a workload without a template.
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

    /// Returns whether `spec.os` is Windows, to which some checks do not apply.
    pub(super) fn is_of_windows(self) -> bool {
        self.spec["os"]["name"] == "windows"
    }

    /// Returns whether the Pod has a user namespace: `hostUsers` is false.
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

/// Returns a text, empty if there is none.
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

/// Returns whether an update changes images or the list of containers.
///
/// Everything else that the checks read is immutable.
// `isSignificantPodUpdate`.
#[must_use]
pub fn is_significant_update(new: Pod<'_>, old: Pod<'_>) -> bool {
    fn list<'a>(pod: Pod<'a>, name: &str) -> &'a [Value] {
        pod.spec[name].as_array().map_or(&[], Vec::as_slice)
    }
    let differ = |new: &Value, old: &Value| text(&new["image"]) != text(&old["image"]);
    let fixed = ["containers", "initContainers"];
    let fixed = fixed.map(|name| (list(new, name), list(old, name)));
    if fixed.iter().any(|(new, old)| new.len() != old.len()) {
        return true;
    }
    let mut pairs = fixed.iter().flat_map(|(new, old)| new.iter().zip(*old));
    if pairs.any(|(new, old)| differ(new, old)) {
        return true;
    }
    let known = list(old, "ephemeralContainers");
    list(new, "ephemeralContainers").iter().any(|container| {
        let mut known = known.iter();
        let was = known.find(|each| text(&each["name"]) == text(&container["name"]));
        was.is_none_or(|was| differ(container, was))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(spec: &Value) -> Pod<'_> {
        Pod {
            metadata: &Value::Null,
            spec,
        }
    }

    #[test]
    fn changes_of_images_and_containers_matter() {
        let old = json!({
            "containers": [{"name": "a", "image": "1"}],
            "ephemeralContainers": [{"name": "e", "image": "1"}],
        });
        for (new, matters) in [
            (old.clone(), false),
            (
                json!({"containers": [{"name": "a", "image": "1", "tty": true}], "hostPID": true}),
                false,
            ),
            (json!({"containers": [{"name": "a", "image": "2"}]}), true),
            (json!({"containers": []}), true),
            (
                json!({"containers": [{"image": "1"}], "initContainers": [{}]}),
                true,
            ),
            (
                json!({"containers": [{"image": "1"}], "ephemeralContainers": [{"name": "f"}]}),
                true,
            ),
            (
                json!({"containers": [{"image": "1"}], "ephemeralContainers": [{"name": "e"}]}),
                true,
            ),
        ] {
            assert_eq!(
                is_significant_update(pod(&new), pod(&old)),
                matters,
                "{new}"
            );
        }
    }
}
