//! The wanted objects of a set, as a reconciler lists them.

use lariat_core::Gvk;
use serde_json::{Map, Value};

use super::adding::adding_objects;
use super::dependent::{Bad, Dependent, ObjectOptions, gvk_of};
use super::step::{Stages, Step};

/// The wanted objects of a set, of any kinds and in any order.
///
/// Adding an object never fails: [`apply`](crate::Reconcile::apply) reports invalid objects together with all other
/// errors. A namespaced object without a namespace gets the owner's. Fields that only the API server sets (status, uid,
/// resource version and so on) are removed.
///
/// Objects can have options of their own ([`Dependent`]). They can be applied in [steps](Step): the objects of a step
/// are applied once those of the steps before it are ready. Objects outside of steps are applied with the first step.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::ObjectMeta;
/// use lariat::Desired;
/// use serde_json::json;
///
/// let metadata = ObjectMeta { name: Some("web".to_owned()), ..ObjectMeta::default() };
/// let config = ConfigMap { metadata, ..ConfigMap::default() };
/// let desired = Desired::new().with(&config).with_value(json!({
///     "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
///     "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}},
/// }));
/// assert_eq!(desired.len(), 2);
/// ```
#[derive(Clone, Default)]
#[must_use = "objects are not applied before `apply` is called with them"]
pub struct Desired {
    objects: Vec<Dependent>,
    steps: Vec<Step>,
}

impl Desired {
    /// Creates a set without objects; applying it prunes everything.
    pub fn new() -> Self {
        Self::default()
    }

    adding_objects!();

    /// Adds a step: objects that are applied once earlier steps are ready.
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Returns the number of objects, including those of steps that are disabled.
    #[must_use]
    pub fn len(&self) -> usize {
        let steps = self.steps.iter();
        self.objects.len() + steps.map(|step| step.objects.len()).sum::<usize>()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the order of the steps; the error says why there is none.
    pub(super) fn stages(&self) -> Result<Stages, String> {
        Stages::of(&self.steps)
    }

    /// Returns the wanted objects; those of a step with the number of the step.
    pub(super) fn into_wanted(self) -> Vec<(Option<usize>, Result<Wanted, Misfit>)> {
        let plain = self.objects.into_iter().map(|each| (None, read(each)));
        let mut all: Vec<_> = plain.collect();
        for (number, step) in self.steps.into_iter().enumerate() {
            // The objects of a disabled step are not wanted, and are pruned.
            let objects = step.objects.into_iter().filter(|_| step.wanted);
            all.extend(objects.map(|each| (Some(number), read(each))));
        }
        all
    }
}

impl std::fmt::Debug for Desired {
    /// Prints the numbers only: the contents may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desired")
            .field("objects", &self.len())
            .field("steps", &self.steps.len())
            .finish_non_exhaustive()
    }
}

/// An object that has a kind and a name.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) gvk: Gvk,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) object: Map<String, Value>,
    pub(super) options: ObjectOptions,
}

/// A value that is not a valid object, with what is known of its kind and name.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) gvk: Gvk,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) reason: String,
}

fn read(dependent: Dependent) -> Result<Wanted, Misfit> {
    let Dependent { object, options } = dependent;
    let bad = |gvk, namespace, name, reason: &str| Misfit {
        gvk,
        namespace,
        name,
        reason: reason.to_owned(),
    };
    let value = match object {
        Ok(value) => value,
        Err(Bad { gvk, name, reason }) => return Err(bad(gvk, None, name, &reason)),
    };
    let text = |pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str);
        text.map(str::to_owned).filter(|text| !text.is_empty())
    };
    let namespace = text("/metadata/namespace");
    let name = text("/metadata/name");
    let shown = name.clone().unwrap_or_default();
    let (kind, version) = (text("/kind"), text("/apiVersion"));
    let gvk = gvk_of(
        version.as_deref().unwrap_or_default(),
        kind.as_deref().unwrap_or_default(),
    );
    let Some(gvk) = gvk else {
        let gvk = Gvk::new("", &version.unwrap_or_default(), &kind.unwrap_or_default());
        return Err(bad(
            gvk,
            namespace,
            shown,
            "it has no `apiVersion` and `kind`",
        ));
    };
    let (Some(name), Value::Object(object)) = (name, value) else {
        let reason = "it has no `metadata.name`; server-side apply does not generate names";
        return Err(bad(gvk, namespace, shown, reason));
    };
    // It would be another path of the API.
    if shown.contains('/') || namespace.as_deref().is_some_and(|name| name.contains('/')) {
        return Err(bad(gvk, namespace, shown, "a name cannot contain `/`"));
    }
    Ok(Wanted {
        gvk,
        namespace,
        name,
        object: without_server_fields(object),
        options,
    })
}

/// Removes the fields that only the API server sets.
///
/// The API server refuses an apply with `managedFields`. An apply with a resource version would conflict with every
/// change of the object.
fn without_server_fields(mut object: Map<String, Value>) -> Map<String, Value> {
    const OF_THE_SERVER: [&str; 8] = [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    ];
    // The status belongs to other controllers, and types may serialize it with defaults.
    object.remove("status");
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in OF_THE_SERVER {
            metadata.remove(name);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn misfit(value: Value) -> String {
        let misfit = Desired::new().with_value(value).into_wanted().remove(0).1;
        let Misfit {
            gvk, name, reason, ..
        } = misfit.unwrap_err();
        format!("{gvk} {name}: {reason}")
    }

    #[test]
    fn what_is_no_object_is_named() {
        let generated =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}});
        assert!(misfit(generated).starts_with("v1 Pod : it has no `metadata.name`"));
        assert!(misfit(json!({"metadata": {"name": "a"}})).contains("a: it has no `apiVersion`"));
        for value in [json!(null), json!([1]), json!("text"), json!({"kind": 1})] {
            misfit(value);
        }
    }

    #[test]
    fn what_the_server_sets_is_left_out() {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Running"},
            "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "managedFields": []}});
        let wanted = Desired::new().with_value(object).into_wanted().remove(0).1;
        let object = wanted.unwrap().object;
        assert_eq!(object["metadata"], json!({"name": "a"}));
        assert!(!object.contains_key("status"));
    }
}
