//! Kinds: the type of an object, and the resource that serves it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::{ObjectKey, path_segment};

/// Group, version and kind: the identity by which watches and caches are shared.
///
/// Prints as `v1 Pod` or `example.com/v1 Widget`; parses from `v1/Pod` or `example.com/v1/Widget`. Cloning is cheap:
/// clones share the texts.
///
/// ```
/// use lariat::Gvk;
///
/// let deployment: Gvk = "apps/v1/Deployment".parse()?;
/// assert_eq!(deployment, Gvk::new("apps", "v1", "Deployment"));
/// assert_eq!(deployment.to_string(), "apps/v1 Deployment");
/// # Ok::<(), lariat::core::ParseGvkError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// The group; empty for core kinds.
    group: Arc<str>,
    /// The version.
    version: Arc<str>,
    /// The kind.
    kind: Arc<str>,
}

impl Gvk {
    /// Creates the identity of a kind.
    ///
    /// The group of core kinds such as Pod and Service is empty.
    ///
    /// ```
    /// use lariat::Gvk;
    ///
    /// assert_eq!(Gvk::new("", "v1", "Pod").to_string(), "v1 Pod");
    /// ```
    #[must_use]
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// Returns the group, which is empty for core kinds.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// Returns the version, such as `v1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the kind, such as `Pod`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the `apiVersion`: `group/version`, or `version` for core kinds.
    ///
    /// ```
    /// use lariat::Gvk;
    ///
    /// assert_eq!(Gvk::new("", "v1", "Pod").api_version(), "v1");
    /// assert_eq!(Gvk::new("apps", "v1", "Deployment").api_version(), "apps/v1");
    /// ```
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the URL path at which the API server serves the group and version.
    ///
    /// ```
    /// use lariat::Gvk;
    ///
    /// assert_eq!(Gvk::new("", "v1", "Pod").api_path(), "/api/v1");
    /// assert_eq!(Gvk::new("apps", "v1", "Deployment").api_path(), "/apis/apps/v1");
    /// ```
    #[must_use]
    pub fn api_path(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }
}

impl FromStr for Gvk {
    type Err = ParseGvkError;

    fn from_str(text: &str) -> Result<Self, ParseGvkError> {
        let parts: Vec<&str> = text.split('/').collect();
        match parts[..] {
            // Two parts are a core kind, whose group is empty.
            [version, kind] if !version.is_empty() && !kind.is_empty() => {
                Ok(Self::new("", version, kind))
            }
            [group, version, kind] if parts.iter().all(|part| !part.is_empty()) => {
                Ok(Self::new(group, version, kind))
            }
            _ => Err(ParseGvkError { text: text.into() }),
        }
    }
}

impl From<&Gvk> for Gvk {
    fn from(gvk: &Gvk) -> Self {
        gvk.clone()
    }
}

#[cfg(feature = "kube")]
impl From<kube_core::GroupVersionKind> for Gvk {
    fn from(gvk: kube_core::GroupVersionKind) -> Self {
        Self::from(&gvk)
    }
}

#[cfg(feature = "kube")]
impl From<&kube_core::GroupVersionKind> for Gvk {
    fn from(gvk: &kube_core::GroupVersionKind) -> Self {
        Self::new(&gvk.group, &gvk.version, &gvk.kind)
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} {}", self.api_version(), self.kind))
    }
}

impl fmt::Debug for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gvk({self})")
    }
}

/// A text that is neither `version/Kind` nor `group/version/Kind`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a kind: expected \"version/Kind\" or \"group/version/Kind\"")]
pub struct ParseGvkError {
    /// The text.
    text: Box<str>,
}

/// Whether the objects of a kind are in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// One object per name in the whole cluster.
    Cluster,
    /// One object per name in each namespace.
    Namespaced,
}

/// A kind and its resource: the plural name in URLs, and the scope.
///
/// ```
/// use lariat::core::{ResourceKind, Scope};
/// use lariat::Gvk;
///
/// let pods = ResourceKind::new(Gvk::new("", "v1", "Pod"), "pods", Scope::Namespaced);
/// assert_eq!(pods.collection_path(None), "/api/v1/pods");
/// assert_eq!(pods.collection_path(Some("shop")), "/api/v1/namespaces/shop/pods");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceKind {
    /// Group, version and kind.
    gvk: Gvk,
    /// The plural name.
    plural: Arc<str>,
    /// The scope.
    scope: Scope,
}

impl ResourceKind {
    /// Creates the resource of a kind from its plural name and scope.
    #[must_use]
    pub fn new(gvk: Gvk, plural: &str, scope: Scope) -> Self {
        Self {
            gvk,
            plural: plural.into(),
            scope,
        }
    }

    /// Returns group, version and kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns the plural name in URLs, such as `pods`.
    #[must_use]
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Returns the scope.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns the URL path of all objects, or of the objects in one namespace.
    ///
    /// The namespace is [escaped](path_segment); for a cluster-scoped kind it is ignored.
    #[must_use]
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let base = self.gvk.api_path();
        // Callers pass the namespace of a key or an option without asking for the scope.
        match namespace.filter(|_| self.scope == Scope::Namespaced) {
            Some(namespace) => {
                let namespace = path_segment(namespace);
                format!("{base}/namespaces/{namespace}/{}", self.plural)
            }
            None => format!("{base}/{}", self.plural),
        }
    }

    /// Returns the URL path of one object.
    ///
    /// Namespace and name are [escaped](path_segment).
    ///
    /// ```
    /// use lariat::core::{ResourceKind, Scope};
    /// use lariat::{Gvk, ObjectKey};
    ///
    /// let pods = ResourceKind::new(Gvk::new("", "v1", "Pod"), "pods", Scope::Namespaced);
    /// let key = ObjectKey::namespaced("shop", "web-0");
    /// assert_eq!(pods.object_path(&key), "/api/v1/namespaces/shop/pods/web-0");
    /// ```
    #[must_use]
    pub fn object_path(&self, key: &ObjectKey) -> String {
        let name = path_segment(key.name());
        format!("{}/{name}", self.collection_path(key.namespace()))
    }
}

#[cfg(feature = "kube")]
impl From<&ResourceKind> for kube_core::ApiResource {
    fn from(resource: &ResourceKind) -> Self {
        Self {
            group: resource.gvk.group().into(),
            version: resource.gvk.version().into(),
            api_version: resource.gvk.api_version(),
            kind: resource.gvk.kind().into(),
            plural: resource.plural().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gvk_prints_as_people_write_it() {
        assert_eq!(Gvk::new("", "v1", "Pod").to_string(), "v1 Pod");
        assert_eq!(
            Gvk::new("apps", "v1", "Deployment").to_string(),
            "apps/v1 Deployment"
        );
    }

    #[test]
    fn a_gvk_parses_with_and_without_group() {
        assert_eq!("v1/Pod".parse(), Ok(Gvk::new("", "v1", "Pod")));
        assert_eq!(
            "apps/v1/Deployment".parse(),
            Ok(Gvk::new("apps", "v1", "Deployment"))
        );
        for text in ["", "Pod", "/v1/Pod", "v1/", "a/b/c/d"] {
            assert!(text.parse::<Gvk>().is_err(), "{text}");
        }
    }

    #[test]
    fn paths_follow_scope_and_group() {
        let node = ResourceKind::new(Gvk::new("", "v1", "Node"), "nodes", Scope::Cluster);
        assert_eq!(node.collection_path(Some("ignored")), "/api/v1/nodes");
        assert_eq!(
            node.object_path(&ObjectKey::cluster("n1")),
            "/api/v1/nodes/n1"
        );

        let gvk = Gvk::new("apps", "v1", "Deployment");
        let deployment = ResourceKind::new(gvk, "deployments", Scope::Namespaced);
        assert_eq!(
            deployment.object_path(&ObjectKey::namespaced("shop", "web")),
            "/apis/apps/v1/namespaces/shop/deployments/web"
        );
        assert_eq!(
            deployment.object_path(&ObjectKey::namespaced("a?b", "victim?x#y")),
            "/apis/apps/v1/namespaces/a%3Fb/deployments/victim%3Fx%23y"
        );
    }
}
