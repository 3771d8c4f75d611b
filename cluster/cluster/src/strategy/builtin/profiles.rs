//! Profiles of AppArmor in annotations, which became members of containers.

use lariat_apimachinery::object::Object;
use serde_json::{Map, Value, json};

use super::parts::at;

const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The length of the name of a profile, in bytes.
const MOST: usize = 4095;

/// Writes the profiles in the annotations of a new Pod into its containers.
///
/// Returns the warnings about the annotations.
///
/// Source: `applyAppArmorVersionSkew` in `k8s.io/kubernetes/pkg/registry/core/pod`.
pub(in crate::strategy) fn sync(pod: &mut Object) -> Vec<String> {
    let annotations = annotations(pod);
    if annotations.is_empty() || at(pod, &["spec", "os", "name"]) == Some(&json!("windows")) {
        return Vec::new();
    }
    let of_pod = at(pod, &["spec", "securityContext", "appArmorProfile"]).cloned();
    let mut warnings = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod
            .get_mut("spec")
            .and_then(|spec| spec.get_mut(list)?.as_array_mut());
        for container in containers.into_iter().flatten() {
            let key = format!(
                "{ANNOTATION}{}",
                container["name"].as_str().unwrap_or_default()
            );
            let Some(text) = annotations.get(&key) else {
                continue;
            };
            if !container["securityContext"]["appArmorProfile"].is_null() {
                continue;
            }
            let profile = text.as_str().and_then(profile);
            // An annotation that says what the profile of the Pod says is no reason to warn.
            if profile.is_some() && profile == of_pod {
                continue;
            }
            if let Some(profile) = profile {
                container["securityContext"]["appArmorProfile"] = profile;
            }
            warnings.push(format!(
                "metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
            ));
        }
    }
    warnings
}

/// Returns whether a Pod has an annotation that names a profile.
pub(in crate::strategy) fn has_some(pod: &Object) -> bool {
    !annotations(pod).is_empty()
}

/// Returns the annotations of a Pod that name profiles.
fn annotations(pod: &Object) -> Map<String, Value> {
    let all = at(pod, &["metadata", "annotations"]).and_then(Value::as_object);
    let all = all.into_iter().flatten();
    all.filter(|(key, _)| key.starts_with(ANNOTATION))
        .map(|(key, text)| (key.clone(), text.clone()))
        .collect()
}

/// Returns the profile that an annotation means, if it is valid.
// `ApparmorFieldForAnnotation` and `ValidateAppArmorProfileField`.
fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        _ => annotation
            .strip_prefix("localhost/")
            .filter(|name| !name.is_empty() && name.trim() == *name && name.len() <= MOST)
            .map(|name| json!({"type": "Localhost", "localhostProfile": name})),
    }
}
