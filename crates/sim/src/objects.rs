//! The objects that foreign clients write.

use std::fmt;
use std::sync::Arc;

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use lariat_core::Gvk;
use serde_json::{Value, json};

/// A kind whose objects foreign clients write and delete during a run.
///
/// ```
/// use lariat::sim::Objects;
/// use lariat::Gvk;
/// use serde_json::json;
///
/// let config_maps = Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps")
///     .content(|number| json!({"data": {"number": number.to_string()}}));
/// # drop(config_maps);
/// ```
#[derive(Clone)]
#[must_use = "objects do nothing until a simulation has them"]
pub struct Objects {
    gvk: Gvk,
    plural: String,
    content: Arc<dyn Fn(u64) -> Value + Send + Sync>,
    schema: Option<Value>,
    initial: u16,
    /// Whether each CRD of the kind is the same.
    pub(crate) has_one_version: bool,
    /// Whether contents name owners that need not exist.
    pub(crate) has_owners: bool,
}

impl Objects {
    /// Names a built-in kind and the plural of its resource.
    pub fn new(gvk: Gvk, plural: impl Into<String>) -> Self {
        Self {
            gvk,
            plural: plural.into(),
            content: Arc::new(
                |number| json!({"metadata": {"annotations": {"number": number.to_string()}}}),
            ),
            schema: None,
            has_one_version: false,
            has_owners: false,
            initial: 0,
        }
    }

    /// Sets the merge patch that writes an object (default: an annotation).
    ///
    /// The number is random, from the seed.
    pub fn content(self, content: impl Fn(u64) -> Value + Send + Sync + 'static) -> Self {
        let content = Arc::new(content);
        Self { content, ..self }
    }

    /// Makes the kind a custom one, with the schema of its objects.
    ///
    /// The simulation defines it before the program starts. During a run it may vanish, and come back with another
    /// version or scope; at the end it is served as `gvk` says, in namespaces.
    ///
    /// ```
    /// use lariat::Gvk;
    /// use lariat::sim::Objects;
    /// use serde_json::json;
    ///
    /// let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    /// let widgets = Objects::new(Gvk::new("example.com", "v1", "Widget"), "widgets")
    ///     .custom(schema)
    ///     .content(|number| json!({"spec": {"number": number}}));
    /// # drop(widgets);
    /// ```
    pub fn custom(self, open_api_v3_schema: Value) -> Self {
        let schema = Some(open_api_v3_schema);
        Self { schema, ..self }
    }

    /// Sets how many objects there are before the programs start (default 0).
    ///
    /// ```
    /// use lariat::Gvk;
    /// use lariat::sim::Objects;
    ///
    /// // A program that lists in pages sees several of them.
    /// let secrets = Objects::new(Gvk::new("", "v1", "Secret"), "secrets").initial(1200);
    /// # drop(secrets);
    /// ```
    pub fn initial(self, objects: u16) -> Self {
        let initial = objects;
        Self { initial, ..self }
    }

    pub(crate) fn initial_count(&self) -> u16 {
        self.initial
    }

    pub(crate) fn has_owners(&self) -> bool {
        self.has_owners
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    pub(crate) fn plural(&self) -> &str {
        &self.plural
    }

    pub(crate) fn is_custom(&self) -> bool {
        self.schema.is_some()
    }

    pub(crate) fn resource(&self) -> ApiResource {
        let gvk = GroupVersionKind::gvk(self.gvk.group(), self.gvk.version(), self.gvk.kind());
        ApiResource::from_gvk_with_plural(&gvk, &self.plural)
    }

    /// Returns the content of a write.
    pub(crate) fn object(&self, name: &str) -> Value {
        let mut object = (self.content)(fastrand::u64(..1_000_000));
        object["metadata"]["name"] = name.into();
        object
    }

    /// Returns a CRD of the kind: 0 is the usual one, others differ in version or scope.
    pub(crate) fn crd(&self, number: u8) -> Value {
        let version = if number & 1 == 0 || self.has_one_version {
            self.gvk.version()
        } else {
            "v9"
        };
        let scope = if number & 2 == 0 || self.has_one_version {
            "Namespaced"
        } else {
            "Cluster"
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{}.{}", self.plural, self.gvk.group())},
            "spec": {
                "group": self.gvk.group(),
                "scope": scope,
                "names": {
                    "kind": self.gvk.kind(), "plural": self.plural,
                    "singular": self.gvk.kind().to_lowercase(),
                },
                "versions": [{
                    "name": version, "served": true, "storage": true,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": self.schema},
                }],
            },
        })
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("gvk", &self.gvk)
            .finish_non_exhaustive()
    }
}
