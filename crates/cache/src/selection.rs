//! The selection of objects that are cached.

use std::sync::Arc;

use lariat_core::{FieldSelector, LabelSelector, ObjectMetadata};

/// The selection of a kind's objects that are watched and cached (default: all).
///
/// All users of the kind share the selection, because there is one watch and one store.
///
/// ```
/// use lariat::Selection;
///
/// let selection = Selection::all()
///     .in_namespaces(["shop", "shop-test"])
///     .with_labels("app.kubernetes.io/managed-by=demo".parse()?);
/// # let _ = selection; Ok::<(), lariat::core::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "a selection does nothing until it is given to an informer"]
pub struct Selection {
    /// Namespaces, sorted and without duplicates; empty means all.
    namespaces: Vec<Arc<str>>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Selects all objects.
    ///
    /// ```
    /// use lariat::Selection;
    ///
    /// assert_eq!(Selection::all(), Selection::default());
    /// assert!(Selection::all().namespaces().is_empty());
    /// ```
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects the objects of some namespaces; an empty list means all.
    ///
    /// Each namespace has its own list and watch. Cluster-scoped kinds are not restricted. With many namespaces, one
    /// watch of all is cheaper: see the guide on caches.
    ///
    /// ```
    /// use lariat::Selection;
    ///
    /// let selection = Selection::all().in_namespaces(["shop", "shop-test", "shop"]);
    /// assert_eq!(selection.namespaces().len(), 2);
    /// ```
    pub fn in_namespaces<N: AsRef<str>>(self, namespaces: impl IntoIterator<Item = N>) -> Self {
        let mut namespaces: Vec<Arc<str>> = namespaces
            .into_iter()
            .map(|name| name.as_ref().into())
            .collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        Self { namespaces, ..self }
    }

    /// Selects by labels.
    ///
    /// ```
    /// use lariat::Selection;
    ///
    /// let shop = Selection::all().with_labels("app=shop".parse()?);
    /// assert_eq!(shop.labels().to_string(), "app=shop");
    /// # Ok::<(), lariat::core::SelectorError>(())
    /// ```
    pub fn with_labels(self, labels: LabelSelector) -> Self {
        Self { labels, ..self }
    }

    /// Selects by fields.
    ///
    /// Each kind supports certain fields; the API server refuses a selector with others. Writes of this process are in
    /// the cache before their calls return if the selector has no other fields than `metadata.name` and
    /// `metadata.namespace`; with other fields, which only the API server evaluates, they are there once the watch
    /// reports them.
    ///
    /// ```
    /// use lariat::Selection;
    ///
    /// let running = Selection::all().with_fields("status.phase=Running".parse()?);
    /// assert_eq!(running.fields().to_string(), "status.phase=Running");
    /// # Ok::<(), lariat::core::SelectorError>(())
    /// ```
    pub fn with_fields(self, fields: FieldSelector) -> Self {
        Self { fields, ..self }
    }

    /// Returns the namespaces; empty means all.
    #[must_use]
    pub fn namespaces(&self) -> &[Arc<str>] {
        &self.namespaces
    }

    /// Returns the label selector.
    #[must_use]
    pub fn labels(&self) -> &LabelSelector {
        &self.labels
    }

    /// Returns the field selector.
    #[must_use]
    pub fn fields(&self) -> &FieldSelector {
        &self.fields
    }

    /// Returns whether an object may be selected, by namespace, name and labels.
    ///
    /// Other fields are ignored: only the API server can evaluate them.
    #[must_use]
    pub fn may_match(&self, object: &ObjectMetadata) -> bool {
        self.selects(object) != Some(false)
    }

    /// Returns whether an object is selected; `None` if only the API server knows.
    pub(crate) fn selects(&self, object: &ObjectMetadata) -> Option<bool> {
        let in_namespace = match object.key().namespace() {
            Some(namespace) if !self.namespaces.is_empty() => {
                self.namespaces.iter().any(|each| &**each == namespace)
            }
            _ => true,
        };
        if !in_namespace || !self.labels.matches(object.labels()) {
            return Some(false);
        }
        self.fields.matches_known(|path| match path {
            "metadata.name" => Some(object.key().name()),
            // A cluster-scoped object has none.
            "metadata.namespace" => Some(object.key().namespace().unwrap_or_default()),
            _ => None,
        })
    }

    /// Returns whether the selection depends on nothing but the namespace.
    pub(crate) fn selects_by_namespace_only(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns whether a namespace is selected, or all of them for `None`.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        let is_it = |name: &str| self.namespaces.iter().any(|each| &**each == name);
        self.namespaces.is_empty() || namespace.is_some_and(is_it)
    }
}
