//! The wanted objects of a set.

use kube::api::{DynamicObject, TypeMeta};
use lariat_core::Gvk;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The wanted objects of a set, of any kinds and in any order.
///
/// Invalid objects are not refused here: [`apply`](crate::Reconcile::apply) reports them with all other errors, under
/// what is known of their kind and name. A namespaced object without a namespace gets the owner's. Fields that only the
/// API server sets (status, uid, resource version and so on) are removed.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::ObjectMeta;
/// use lariat_operator::Desired;
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
    objects: Vec<Result<Value, Bad>>,
}

/// An object that could not be serialized.
#[derive(Debug, Clone)]
struct Bad {
    gvk: Gvk,
    name: String,
    reason: String,
}

impl Desired {
    /// Creates a set without objects; applying it prunes everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a typed object.
    pub fn with<K>(mut self, object: &K) -> Self
    where
        K: kube::Resource<DynamicType = ()> + Serialize,
    {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        let value = serde_json::to_value(object).map_err(|error| Bad {
            gvk: gvk.clone(),
            name: object_name(object),
            reason: error.to_string(),
        });
        let object = value.map(|mut value| {
            if let Some(object) = value.as_object_mut() {
                object.insert("apiVersion".to_owned(), json!(gvk.api_version()));
                object.insert("kind".to_owned(), json!(gvk.kind()));
            }
            value
        });
        self.objects.push(object);
        self
    }

    /// Adds a dynamic object, whose kind is in its [`types`](DynamicObject::types).
    pub fn with_dynamic(mut self, object: &DynamicObject) -> Self {
        let TypeMeta { api_version, kind } = object.types.clone().unwrap_or_default();
        let value = serde_json::to_value(object).map_err(|error| Bad {
            gvk: gvk_of(&api_version, &kind).unwrap_or_else(|| Gvk::new("", "", &kind)),
            name: object.metadata.name.clone().unwrap_or_default(),
            reason: error.to_string(),
        });
        self.objects.push(value);
        self
    }

    /// Adds an object as JSON.
    pub fn with_value(mut self, object: Value) -> Self {
        self.objects.push(Ok(object));
        self
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) fn into_wanted(self) -> Vec<Result<Wanted, Misfit>> {
        self.objects.into_iter().map(read).collect()
    }
}

fn object_name<K: kube::Resource>(object: &K) -> String {
    object.meta().name.clone().unwrap_or_default()
}

impl std::fmt::Debug for Desired {
    /// Prints the number; contents stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desired")
            .field("objects", &self.objects.len())
            .finish_non_exhaustive()
    }
}

/// An object with a kind and a name.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) gvk: Gvk,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) object: Map<String, Value>,
}

/// A value that is not a valid object, with what is known of it.
#[derive(Debug)]
pub(super) struct Misfit {
    pub(super) gvk: Gvk,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) reason: String,
}

fn read(object: Result<Value, Bad>) -> Result<Wanted, Misfit> {
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
        let reason = "it has no `metadata.name`; names that are to be generated cannot be applied";
        return Err(bad(gvk, namespace, shown, reason));
    };
    if shown.contains('/') || namespace.as_deref().is_some_and(|name| name.contains('/')) {
        return Err(bad(gvk, namespace, shown, "a name cannot contain `/`"));
    }
    Ok(Wanted {
        gvk,
        namespace,
        name,
        object: without_server_fields(object),
    })
}

/// Returns the kind; `None` if a part is missing.
pub(super) fn gvk_of(api_version: &str, kind: &str) -> Option<Gvk> {
    format!("{api_version}/{kind}").parse().ok()
}

/// Removes the fields that only the API server sets.
///
/// An apply with `managedFields` is refused, and one with a resource version conflicts with every change.
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

    fn misfit(value: Value) -> String {
        let misfit = Desired::new().with_value(value).into_wanted().remove(0);
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
        let wanted = Desired::new().with_value(object).into_wanted().remove(0);
        let object = wanted.unwrap().object;
        assert_eq!(object["metadata"], json!({"name": "a"}));
        assert!(!object.contains_key("status"));
    }
}
