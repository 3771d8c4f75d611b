//! Objects for tests: minimal valid ones, to which a test adds what it needs.

use http::Request;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::core::request::Error as RequestError;
use kube::{Api, Client, Error};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::wait::{Wait, WaitError};

/// An object to create, from [`pod`], [`deployment`] and similar functions.
///
/// A test sets what it needs beyond the defaults.
///
/// It serializes as the object, so it can be sent, printed and compared; [`to`](Self::to) turns it into a type.
///
/// ```
/// use lariat::cluster::testing::pod;
///
/// let web = pod("web").namespace("shop").label("app", "web").set("/spec/nodeName", "node-1");
/// assert_eq!(web.value()["spec"]["nodeName"], "node-1");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a fixture is not in the cluster until it is created"]
pub struct Fixture {
    object: Value,
    plural: String,
}

/// Returns a pod with one container, in namespace `default`.
///
/// ```
/// use lariat::cluster::testing::pod;
///
/// let web = pod("web");
/// assert_eq!(web.value()["metadata"]["namespace"], "default");
/// assert_eq!(web.value()["spec"]["containers"].as_array().map(Vec::len), Some(1));
/// ```
pub fn pod(name: &str) -> Fixture {
    Fixture::namespaced("v1", "Pod", name).set("/spec", pod_spec())
}

/// Returns a Deployment whose pods have the label `app` with its name.
///
/// ```
/// use lariat::cluster::testing::deployment;
///
/// let web = deployment("web", 3);
/// assert_eq!(web.value()["spec"]["replicas"], 3);
/// assert_eq!(web.value()["spec"]["selector"]["matchLabels"]["app"], "web");
/// ```
pub fn deployment(name: &str, replicas: u32) -> Fixture {
    let labels = json!({"app": name});
    Fixture::namespaced("apps/v1", "Deployment", name).set(
        "/spec",
        json!({
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec()},
        }),
    )
}

/// Returns a ConfigMap with data, in namespace `default`.
///
/// ```
/// use lariat::cluster::testing::config_map;
///
/// let settings = config_map("settings", &[("color", "red")]);
/// assert_eq!(settings.value()["data"]["color"], "red");
/// ```
pub fn config_map(name: &str, data: &[(&str, &str)]) -> Fixture {
    Fixture::namespaced("v1", "ConfigMap", name).set("/data", texts(data))
}

/// Returns a Secret with data in plain text, in namespace `default`.
pub fn secret(name: &str, data: &[(&str, &str)]) -> Fixture {
    Fixture::namespaced("v1", "Secret", name).set("/stringData", texts(data))
}

fn texts(data: &[(&str, &str)]) -> Value {
    let text = |(key, value): &(&str, &str)| ((*key).to_owned(), Value::from(*value));
    Value::Object(data.iter().map(text).collect())
}

/// Returns a namespace.
pub fn namespace(name: &str) -> Fixture {
    Fixture::new("v1", "Namespace", "namespaces", name)
}

/// Returns a node.
pub fn node(name: &str) -> Fixture {
    Fixture::new("v1", "Node", "nodes", name)
}

/// Returns the CRD of a namespaced kind with a status subresource and any content.
///
/// The plural is the kind in lower case with an `s`. [`define`] also waits until the kind is served, and
/// [`object`] returns objects of it.
pub fn crd(group: &str, version: &str, kind: &str) -> Fixture {
    let singular = kind.to_lowercase();
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let name = format!("{singular}s.{group}");
    let plural = "customresourcedefinitions";
    Fixture::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        plural,
        &name,
    )
    .set(
        "/spec",
        json!({
            "group": group, "scope": "Namespaced",
            "names": {
                "plural": format!("{singular}s"), "singular": singular, "kind": kind,
                "listKind": format!("{kind}List"),
            },
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": any, "status": any},
                }},
            }],
        }),
    )
}

/// Returns an object of any namespaced kind, in the namespace `default`.
///
/// Its plural is the kind in lower case with an `s`.
pub fn object(api_version: &str, kind: &str, name: &str) -> Fixture {
    Fixture::namespaced(api_version, kind, name)
}

/// Creates a CRD, and waits until its kind is served.
///
/// # Errors
///
/// The cluster refuses it, or does not establish it in time.
///
/// # Cancel safety
///
/// Dropping the future may leave the CRD created.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::Cluster;
/// use lariat::cluster::testing::{crd, define, object};
///
/// let cluster = Cluster::for_test().await;
/// define(&cluster.client(), &crd("example.com", "v1", "Widget")).await?;
/// let widget = object("example.com/v1", "Widget", "one").set("/spec/size", 3);
/// widget.create(&cluster.client()).await?;
/// # Ok(()) }
/// ```
pub async fn define(client: &Client, definition: &Fixture) -> Result<(), WaitError> {
    let wait = Wait::new(&definition.api(client), &definition.name());
    match definition.create(client).await {
        Ok(_) => wait.condition("Established").await.map(drop),
        Err(error) => Err(wait.refused(&error)),
    }
}

impl Fixture {
    fn new(api_version: &str, kind: &str, plural: &str, name: &str) -> Self {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        Self {
            object,
            plural: plural.to_owned(),
        }
    }

    fn namespaced(api_version: &str, kind: &str, name: &str) -> Self {
        let plural = format!("{}s", kind.to_lowercase());
        Self::new(api_version, kind, &plural, name).namespace("default")
    }

    /// Puts the object into a namespace.
    pub fn namespace(self, namespace: &str) -> Self {
        self.set("/metadata/namespace", namespace)
    }

    /// Adds a label.
    pub fn label(self, name: &str, value: &str) -> Self {
        self.member("/metadata/labels", name, value)
    }

    /// Adds an annotation.
    pub fn annotation(self, name: &str, value: &str) -> Self {
        self.member("/metadata/annotations", name, value)
    }

    /// Adds a finalizer: a deleted object stays until it is removed.
    pub fn finalizer(self, finalizer: &str) -> Self {
        self.push("/metadata/finalizers", finalizer.into())
    }

    /// Makes an object that is in the cluster the controller of this one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lariat::cluster::{Cluster, testing::config_map};
    ///
    /// let cluster = Cluster::for_test().await;
    /// let owner = config_map("owner", &[]).create(&cluster.client()).await?;
    /// let child = config_map("child", &[]).owned_by(&owner).create(&cluster.client()).await?;
    /// assert_eq!(child.metadata.owner_references.unwrap_or_default()[0].name, "owner");
    /// # Ok(()) }
    /// ```
    pub fn owned_by(self, owner: &DynamicObject) -> Self {
        let types = owner.types.clone().unwrap_or_default();
        let reference = json!({
            "apiVersion": types.api_version, "kind": types.kind, "name": owner.metadata.name,
            "uid": owner.metadata.uid, "controller": true, "blockOwnerDeletion": true,
        });
        self.push("/metadata/ownerReferences", reference)
    }

    /// Sets the value at a JSON pointer such as `/spec/nodeName`.
    ///
    /// Missing parents are created.
    ///
    /// # Panics
    ///
    /// If the pointer does not begin with a slash, or leads through a value that is not an object.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::cluster::testing::object;
    ///
    /// let lease = object("coordination.k8s.io/v1", "Lease", "leader").set("/spec/holderIdentity", "one");
    /// assert_eq!(lease.value()["spec"]["holderIdentity"], "one");
    /// ```
    pub fn set(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        *self.at(pointer) = value.into();
        self
    }

    /// Sets the plural, where it is not the lower-case kind with an `s`.
    pub fn plural(self, plural: &str) -> Self {
        Self {
            plural: plural.to_owned(),
            ..self
        }
    }

    /// Returns the object as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.object
    }

    /// Returns the object as a type, such as `Pod` of k8s-openapi.
    ///
    /// # Panics
    ///
    /// If it is not an object of that type.
    ///
    /// # Examples
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::cluster::testing::pod;
    ///
    /// let web: Pod = pod("web").set("/spec/nodeName", "node-1").to();
    /// assert_eq!(web.spec.and_then(|spec| spec.node_name).as_deref(), Some("node-1"));
    /// ```
    #[must_use]
    pub fn to<K: DeserializeOwned>(&self) -> K {
        let object = serde_json::from_value(self.object.clone());
        object.unwrap_or_else(|error| panic!("{} is no such type: {error}", self.text("/kind")))
    }

    /// Returns kube's `Api` for this kind, in this object's namespace if it has one.
    #[must_use]
    pub fn api(&self, client: &Client) -> Api<DynamicObject> {
        let api_version = self.text("/apiVersion");
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: self.text("/kind").to_owned(),
            plural: self.plural.clone(),
        };
        match self.text("/metadata/namespace") {
            "" => Api::all_with(client.clone(), &resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &resource),
        }
    }

    /// Creates the object, and returns it as the server answers.
    ///
    /// # Errors
    ///
    /// The cluster refuses it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave the object created.
    pub async fn create(&self, client: &Client) -> Result<DynamicObject, Error> {
        let api = self.api(client);
        let request = Request::post(api.resource_url())
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(self.object.to_string().into_bytes())
            .map_err(|error| Error::BuildRequest(RequestError::BuildRequest(error)))?;
        client.request(request).await
    }

    pub(super) fn name(&self) -> String {
        self.text("/metadata/name").to_owned()
    }

    fn text(&self, pointer: &str) -> &str {
        let value = self.object.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    }

    fn member(mut self, pointer: &str, name: &str, value: &str) -> Self {
        let map = self.at(pointer);
        map[name] = value.into();
        self
    }

    fn push(mut self, pointer: &str, value: Value) -> Self {
        let list = self.at(pointer);
        if list.is_null() {
            *list = json!([]);
        }
        let list = list.as_array_mut();
        list.unwrap_or_else(|| panic!("{pointer} is no list"))
            .push(value);
        self
    }

    /// Returns the value at a pointer, and creates the objects above it.
    fn at(&mut self, pointer: &str) -> &mut Value {
        let (nothing, path) = pointer.split_once('/').unwrap_or((pointer, ""));
        assert!(
            nothing.is_empty(),
            "{pointer:?} does not begin with a slash"
        );
        path.split('/').fold(&mut self.object, |value, name| {
            let name = name.replace("~1", "/").replace("~0", "~");
            if value.is_array() {
                let at = name.parse::<usize>().ok();
                let element = at.and_then(|at| value.get_mut(at));
                return element.unwrap_or_else(|| panic!("{pointer} points behind a list"));
            }
            assert!(
                value.is_object() || value.is_null(),
                "{pointer} leads through a value"
            );
            &mut value[name]
        })
    }
}

impl Serialize for Fixture {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

fn pod_spec() -> Value {
    json!({"containers": [{"name": "app", "image": "registry.example.com/app:v1"}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_make_what_is_missing_on_the_way() {
        let made = pod("a")
            .set("/status/conditions", json!([{"type": "Ready"}]))
            .set("/status/conditions/0/status", "True")
            .set("/metadata/annotations/example.com~1a", "b")
            .label("x", "y")
            .finalizer("example.com/hold");
        assert_eq!(
            made.value()["status"]["conditions"],
            json!([{"type": "Ready", "status": "True"}])
        );
        assert_eq!(
            made.value()["metadata"],
            json!({
                "name": "a", "namespace": "default", "labels": {"x": "y"}, "finalizers": ["example.com/hold"],
                "annotations": {"example.com/a": "b"},
            })
        );
    }

    #[test]
    #[should_panic(expected = "/metadata/name/x leads through a value")]
    fn pointers_do_not_lead_through_values() {
        let _ = pod("a").set("/metadata/name/x", 1);
    }
}
