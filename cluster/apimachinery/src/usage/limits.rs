//! LimitRanges.
//!
//! Source: `k8s.io/kubernetes/plugin/pkg/admission/limitranger`.

use serde_json::{Map, Value, json};

use super::amounts::Amounts;
use super::pods;
use crate::object::{Object, metadata_mut};
use crate::quantity::Quantity;

/// The annotation that names the limits that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Sets the default requests and limits of a LimitRange in a Pod.
pub fn set_defaults(range: &Object, pod: &mut Object) {
    let (mut requests, mut limits) = (Amounts::default(), Amounts::default());
    // `defaultContainerResourceRequirements`; of several limits for one resource the last one counts.
    for limit in of_type(range, "Container") {
        for (name, amount) in Amounts::read(&limit["defaultRequest"]).iter() {
            requests.set(name, amount);
        }
        for (name, amount) in Amounts::read(&limit["default"]).iter() {
            limits.set(name, amount);
        }
    }
    let mut notes = Vec::new();
    for (list, what) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        let spec = pod.get_mut("spec").and_then(Value::as_object_mut);
        let containers = spec.and_then(|spec| spec.get_mut(list)?.as_array_mut());
        for container in containers.into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            // `mergeContainerResources`. A container with a limit of its own still gets the default request, which may
            // exceed it; validation then refuses the Pod.
            for (part, defaults) in [("requests", &requests), ("limits", &limits)] {
                let set = fill(container, part, defaults);
                if !set.is_empty() {
                    let part = part.trim_end_matches('s');
                    notes.push(format!("{} {part} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let annotations = metadata_mut(pod)
            .entry("annotations")
            .or_insert_with(|| json!({}));
        if let Value::Object(annotations) = annotations {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            annotations.insert(ANNOTATION.into(), note.into());
        }
    }
}

/// Sets the missing amounts of a container; returns the names of those that were set.
fn fill(container: &mut Value, part: &str, defaults: &Amounts) -> Vec<String> {
    let known = Amounts::read(&container["resources"][part]);
    let missing = defaults.only(|name| !known.has(name));
    if missing.is_empty() || !container.is_object() {
        return Vec::new();
    }
    if !container["resources"].is_object() {
        container["resources"] = json!({});
    }
    let list = &mut container["resources"][part];
    if !list.is_object() {
        *list = Value::Object(Map::new());
    }
    let mut set = Vec::new();
    for (name, amount) in missing.iter() {
        list[name] = amount.to_string().into();
        set.push(name.to_owned());
    }
    set
}

/// Checks an object against a LimitRange.
///
/// # Errors
///
/// The violated limits, in one text.
///
/// ```
/// use lariat_apimachinery::usage::check_limits;
/// use serde_json::json;
///
/// let range = json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}});
/// let resources = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}});
/// let pod = json!({"spec": {"containers": [{"name": "web", "resources": resources}]}});
/// let refused = check_limits(
///     range.as_object().expect("an object"),
///     "pods",
///     pod.as_object().expect("an object"),
/// );
/// assert!(refused.unwrap_err().contains("maximum cpu usage per Container is 1"));
/// ```
pub fn check_limits(range: &Object, plural: &str, object: &Object) -> Result<(), String> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let mut faults = Vec::new();
    // A claim has only requests: `PersistentVolumeClaimValidateLimitFunc` uses `maxRequestConstraint` in place of
    // `maxConstraint`.
    if plural == "persistentvolumeclaims" {
        let requests = Amounts::read(&spec["resources"]["requests"]);
        for limit in of_type(range, "PersistentVolumeClaim") {
            let need = Need {
                of: "PersistentVolumeClaim",
                requests: requests.clone(),
                limits: Amounts::default(),
            };
            need.check_least(limit, &mut faults);
            need.check_most_requested(limit, &mut faults);
        }
    } else {
        for limit in all(range) {
            match limit["type"].as_str() {
                Some("Container") => {
                    let containers = pods::containers(spec, "containers");
                    for each in containers.chain(pods::containers(spec, "initContainers")) {
                        let part = |part: &str| Amounts::read(&each["resources"][part]);
                        let need = Need {
                            of: "Container",
                            requests: part("requests"),
                            limits: part("limits"),
                        };
                        need.check(limit, &mut faults);
                    }
                }
                Some("Pod") => {
                    let need = Need {
                        of: "Pod",
                        requests: pods::limited(spec, "requests"),
                        limits: pods::limited(spec, "limits"),
                    };
                    need.check(limit, &mut faults);
                }
                _ => {}
            }
        }
    }
    // Go's aggregate error prints equal errors once.
    faults.dedup();
    match &faults[..] {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}

fn all(range: &Object) -> impl Iterator<Item = &Value> {
    let limits = range.get("spec").and_then(|spec| spec["limits"].as_array());
    limits.into_iter().flatten()
}

fn of_type<'a>(range: &'a Object, wanted: &'a str) -> impl Iterator<Item = &'a Value> {
    all(range).filter(move |limit| limit["type"] == wanted)
}

/// The resources of a Pod or of a container.
struct Need {
    /// The type of the object, as limit ranges name it.
    of: &'static str,
    requests: Amounts,
    limits: Amounts,
}

impl Need {
    fn check(&self, limit: &Value, faults: &mut Vec<String>) {
        self.check_least(limit, faults);
        self.check_most(limit, faults);
        self.check_ratio(limit, faults);
    }

    fn check_least(&self, limit: &Value, faults: &mut Vec<String>) {
        for (name, least) in Amounts::read(&limit["min"]).iter() {
            let rule = format!("minimum {name} usage per {} is {least}", self.of);
            match (self.requests.get(name), self.limits.get(name)) {
                // Two blanks, as in `minConstraint`.
                (None, _) => faults.push(format!("{rule}.  No request is specified")),
                (Some(request), _) if request < least => {
                    faults.push(format!("{rule}, but request is {request}"));
                }
                (_, Some(limit)) if limit < least => {
                    faults.push(format!("{rule}, but limit is {limit}"));
                }
                _ => {}
            }
        }
    }

    fn check_most(&self, limit: &Value, faults: &mut Vec<String>) {
        for (name, most) in Amounts::read(&limit["max"]).iter() {
            let rule = format!("maximum {name} usage per {} is {most}", self.of);
            match (self.requests.get(name), self.limits.get(name)) {
                (_, None) => faults.push(format!("{rule}.  No limit is specified")),
                // The limit comes before the request here, and after it in `check_least`, as in the Go functions.
                (_, Some(limit)) if limit > most => {
                    faults.push(format!("{rule}, but limit is {limit}"));
                }
                (Some(request), _) if request > most => {
                    faults.push(format!("{rule}, but request is {request}"));
                }
                _ => {}
            }
        }
    }

    fn check_most_requested(&self, limit: &Value, faults: &mut Vec<String>) {
        for (name, most) in Amounts::read(&limit["max"]).iter() {
            let rule = format!("maximum {name} usage per {} is {most}", self.of);
            match self.requests.get(name) {
                None => faults.push(format!("{rule}.  No request is specified")),
                Some(request) if request > most => {
                    faults.push(format!("{rule}, but request is {request}"));
                }
                Some(_) => {}
            }
        }
    }

    fn check_ratio(&self, limit: &Value, faults: &mut Vec<String>) {
        for (name, most) in Amounts::read(&limit["maxLimitRequestRatio"]).iter() {
            let rule = format!(
                "{name} max limit to request ratio per {} is {most}",
                self.of
            );
            // A ratio with zero is undefined, so zero counts as absent.
            let given =
                |amount: Option<Quantity>| amount.filter(|amount| *amount != Quantity::ZERO);
            match (given(self.requests.get(name)), given(self.limits.get(name))) {
                (None, _) => faults.push(format!(
                    "{rule}, but no request is specified or request is 0"
                )),
                (_, None) => {
                    faults.push(format!("{rule}, but no limit is specified or limit is 0"))
                }
                (Some(request), Some(limit)) => {
                    let ratio = limit.ratio(request);
                    if ratio > most.ratio(Quantity::whole_number(1)) {
                        // Go prints it by `%f`, which has six digits.
                        faults.push(format!("{rule}, but provided ratio is {ratio:.6}"));
                    }
                }
            }
        }
    }
}
