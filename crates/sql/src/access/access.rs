//! Access: which objects of a kind a user may see.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use lariat_core::ObjectKey;

/// Which objects of a kind a user may see.
///
/// An access allows all objects, none, or the objects in some namespaces and those with some names. The default allows
/// none.
///
/// Equal accesses allow the same objects and consist of the same parts, however they were built: names within a
/// namespace that is allowed as a whole are left out, and so are empty names. A clone shares the parts. The debug form
/// shows the number of names, but not the names.
///
/// ```
/// use lariat::sql::Access;
/// use lariat::ObjectKey;
///
/// let shop = Access::of_namespaces(["shop"]);
/// let access = shop.union(&Access::of_names(Some("bank"), ["door", "till"]));
/// assert!(access.allows(&ObjectKey::namespaced("shop", "anything")));
/// assert!(access.allows(&ObjectKey::namespaced("bank", "till")));
/// assert!(!access.allows(&ObjectKey::namespaced("bank", "vault")));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Access(Extent);

#[derive(Clone, PartialEq, Eq)]
enum Extent {
    Everything,
    Parts(Arc<Parts>),
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Parts {
    /// The namespaces that are allowed as a whole; no name is empty.
    namespaces: BTreeSet<Arc<str>>,
    /// Names by namespace, which is empty for cluster-scoped objects.
    ///
    /// No namespace is in `namespaces` as well, no set is empty, and no name is.
    names: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
}

impl Access {
    /// Allows every object, in any namespace or none.
    #[must_use]
    pub fn everything() -> Self {
        Self(Extent::Everything)
    }

    /// Allows no object.
    #[must_use]
    pub fn nothing() -> Self {
        Self(Extent::Parts(Arc::default()))
    }

    /// Allows all objects in these namespaces; an empty name allows nothing.
    ///
    /// ```
    /// use lariat::sql::Access;
    /// use lariat::ObjectKey;
    ///
    /// let access = Access::of_namespaces(["shop", "bank"]);
    /// assert!(access.allows(&ObjectKey::namespaced("bank", "till")));
    /// assert_eq!(access.namespaces().collect::<Vec<_>>(), ["bank", "shop"]);
    /// ```
    #[must_use]
    pub fn of_namespaces(namespaces: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut parts = Parts::default();
        for namespace in namespaces {
            parts.add_namespace(&namespace.as_ref().into());
        }
        Self(Extent::Parts(Arc::new(parts)))
    }

    /// Allows the objects with these names in a namespace.
    ///
    /// Without a namespace it allows cluster-scoped objects. An empty name allows nothing. An empty namespace counts as
    /// none, as in [`ObjectKey::namespaced`].
    ///
    /// ```
    /// use lariat::sql::Access;
    /// use lariat::ObjectKey;
    ///
    /// let nodes = Access::of_names(None, ["node-1"]);
    /// assert!(nodes.allows(&ObjectKey::cluster("node-1")));
    /// assert!(!nodes.allows(&ObjectKey::cluster("node-2")));
    /// ```
    #[must_use]
    pub fn of_names(
        namespace: Option<&str>,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Self {
        let names = names.into_iter().map(|name| Arc::from(name.as_ref()));
        let mut parts = Parts::default();
        parts.add_names(&namespace.unwrap_or_default().into(), names);
        Self(Extent::Parts(Arc::new(parts)))
    }

    /// Allows what either access allows.
    ///
    /// ```
    /// use lariat::sql::Access;
    ///
    /// let access = Access::of_namespaces(["shop"]).union(&Access::everything());
    /// assert!(access.is_everything());
    /// ```
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        match (&mut self.0, &other.0) {
            (Extent::Everything, _) => {}
            (Extent::Parts(_), Extent::Everything) => self = Self::everything(),
            (Extent::Parts(parts), Extent::Parts(more)) => {
                // Shared instead of copied: a union of many begins with an empty access.
                if parts.is_empty() {
                    *parts = Arc::clone(more);
                } else if !more.is_empty() {
                    Arc::make_mut(parts).add(more);
                }
            }
        }
        self
    }

    /// Returns whether an object with this key may be seen.
    #[must_use]
    pub fn allows(&self, key: &ObjectKey) -> bool {
        match &self.0 {
            Extent::Everything => true,
            Extent::Parts(parts) => {
                let namespace = key.namespace().unwrap_or_default();
                let names = || parts.names.get(namespace);
                // Cluster-scoped objects have the empty namespace, which is only in `names`.
                parts.namespaces.contains(namespace)
                    || names().is_some_and(|names| names.contains(key.name()))
            }
        }
    }

    /// Returns whether every object is allowed.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        matches!(self.0, Extent::Everything)
    }

    /// Returns whether no object is allowed.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.parts().is_some_and(Parts::is_empty)
    }

    /// Returns the namespaces that are allowed as a whole.
    ///
    /// They are sorted by their bytes; there are none for [`everything`](Self::everything).
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        let namespaces = self.parts().into_iter().flat_map(|it| &it.namespaces);
        namespaces.map(|namespace| &**namespace)
    }

    /// Returns the names that are allowed individually, grouped by namespace.
    ///
    /// There are none for [`everything`](Self::everything). Groups and names are sorted by their bytes, cluster-scoped
    /// objects (without a namespace) first. No group is empty, and none is for a namespace that is allowed as a whole.
    pub fn names(
        &self,
    ) -> impl Iterator<Item = (Option<&str>, impl ExactSizeIterator<Item = &str>)> {
        let groups = self.parts().into_iter().flat_map(|it| &it.names);
        groups.map(|(namespace, names)| {
            let namespace = Some(&**namespace).filter(|namespace| !namespace.is_empty());
            (namespace, names.iter().map(|name| &**name))
        })
    }

    fn parts(&self) -> Option<&Parts> {
        match &self.0 {
            Extent::Everything => None,
            Extent::Parts(parts) => Some(parts),
        }
    }
}

impl Parts {
    fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.names.is_empty()
    }

    fn add(&mut self, more: &Self) {
        for namespace in &more.namespaces {
            self.add_namespace(namespace);
        }
        for (namespace, names) in &more.names {
            self.add_names(namespace, names.iter().cloned());
        }
    }

    fn add_namespace(&mut self, namespace: &Arc<str>) {
        // The empty text stands for no namespace, which is not allowed as a whole.
        if !namespace.is_empty() {
            // The whole namespace includes its names, and equal accesses must have one form.
            self.names.remove(namespace);
            self.namespaces.insert(Arc::clone(namespace));
        }
    }

    fn add_names(&mut self, namespace: &Arc<str>, names: impl Iterator<Item = Arc<str>>) {
        if self.namespaces.contains(namespace) {
            return;
        }
        let mut names = names.filter(|name| !name.is_empty()).peekable();
        if names.peek().is_some() {
            let group = self.names.entry(Arc::clone(namespace)).or_default();
            group.extend(names);
        }
    }
}

impl Default for Access {
    fn default() -> Self {
        Self::nothing()
    }
}

/// Allows what any of them allows.
impl FromIterator<Access> for Access {
    fn from_iter<I: IntoIterator<Item = Access>>(accesses: I) -> Self {
        let accesses = accesses.into_iter();
        accesses.fold(Self::nothing(), |all, access| all.union(&access))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            None => f.write_str("Access(everything)"),
            Some(parts) => {
                let names: usize = parts.names.values().map(BTreeSet::len).sum();
                f.debug_struct("Access")
                    .field("namespaces", &parts.namespaces.len())
                    .field("names", &names)
                    .finish()
            }
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
