//! Which objects of a kind are cached.

use std::sync::Arc;

use lariat_core::{FieldSelector, LabelSelector, ObjectMetadata};

/// The objects of a kind that are watched and cached; all of them, unless something is said.
///
/// Everybody who uses the kind sees the same selection, for there is one watch and one store.
///
/// ```
/// use lariat_cache::Selection;
///
/// let selection = Selection::all()
///     .in_namespaces(["shop", "shop-test"])
///     .with_labels("app.kubernetes.io/managed-by=demo".parse()?);
/// # let _ = selection; Ok::<(), lariat_core::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a selection does nothing until it is given to an informer"]
pub struct Selection {
    /// None for all namespaces. In order, each once.
    namespaces: Vec<Arc<str>>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Selects all objects.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects the objects of some namespaces; of none given, those of all.
    ///
    /// Each namespace is a list and a watch of its own. Kinds that are not namespaced are not restricted.
    pub fn in_namespaces<N: AsRef<str>>(self, namespaces: impl IntoIterator<Item = N>) -> Self {
        let namespaces = namespaces.into_iter().map(|name| name.as_ref().into());
        let mut namespaces: Vec<Arc<str>> = namespaces.collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        Self { namespaces, ..self }
    }

    /// Selects by labels.
    pub fn with_labels(self, labels: LabelSelector) -> Self {
        Self { labels, ..self }
    }

    /// Selects by fields; which there are depends on the kind, and the API server refuses others.
    pub fn with_fields(self, fields: FieldSelector) -> Self {
        Self { fields, ..self }
    }

    /// Returns the namespaces; none means all.
    #[must_use]
    pub fn namespaces(&self) -> &[Arc<str>] {
        &self.namespaces
    }

    /// Returns the selector of labels.
    #[must_use]
    pub fn labels(&self) -> &LabelSelector {
        &self.labels
    }

    /// Returns the selector of fields.
    #[must_use]
    pub fn fields(&self) -> &FieldSelector {
        &self.fields
    }

    /// Returns whether an object may be selected. What its fields decide only the API server knows.
    #[must_use]
    pub fn may_hold(&self, object: &ObjectMetadata) -> bool {
        let in_namespace = match object.key().namespace() {
            Some(namespace) if !self.namespaces.is_empty() => {
                self.namespaces.iter().any(|each| &**each == namespace)
            }
            _ => true,
        };
        in_namespace && self.labels.matches(object.labels())
    }

    /// Returns whether namespaces alone decide which objects are selected.
    pub(crate) fn selects_by_place_only(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether a namespace, or for none all of them, is selected.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        let is_it = |name: &str| self.namespaces.iter().any(|each| &**each == name);
        self.namespaces.is_empty() || namespace.is_some_and(is_it)
    }

    /// Returns whether an object is selected for certain.
    pub(crate) fn surely_holds(&self, object: &ObjectMetadata) -> bool {
        self.fields.is_empty() && self.may_hold(object)
    }
}
