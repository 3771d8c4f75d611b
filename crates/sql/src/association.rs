//! Associations: kinds whose objects belong to those of another kind, as Pods to Nodes.

use std::sync::Arc;

use lariat_core::Gvk;

/// Objects of another kind that belong to an object, as the Node of a Pod.
///
/// Queries can filter, sort and count by their fields and labels.
///
/// Objects are associated by a field of both, by a label, or by an owner reference, and only within a namespace: an
/// object with a namespace belongs to objects of the same one, and to objects of cluster-scoped kinds. Both kinds must
/// be in the cache, and neither can be encrypted. Watches cannot have conditions on associated objects, because they
/// follow one kind.
///
/// ```
/// use lariat::sql::{Association, Field, FieldType, Query, Schema, associated, field};
/// use lariat::Gvk;
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Gvk::new("", "v1", "Node");
/// let fields = [Field::path("spec.nodeName", FieldType::Text)?];
/// let pods = Schema::new(Gvk::new("", "v1", "Pod"), fields)?
///     .associate(Association::field("node", node, "spec.nodeName", "metadata.name"))?
///     .associate(Association::controller("set", Gvk::new("apps", "v1", "ReplicaSet")))?;
///
/// // Pods on large nodes, those of the newest sets first. The schema of Node has the field.
/// let query = Query::new()
///     .filter(associated("node", field("status.capacity.memory")).greater_than("64Gi"))
///     .sort_descending(associated("set", field("metadata.creationTimestamp")));
/// # Ok(()) }
/// # example().unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Association {
    name: Arc<str>,
    kind: Gvk,
    by: By,
}

/// How objects are associated, as the program has defined it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum By {
    /// The names of fields of this kind and of the other one.
    Field {
        own: Arc<str>,
        other: Arc<str>,
    },
    Label(Arc<str>),
    Owner {
        is_controller: bool,
    },
}

impl Association {
    /// Associates the objects in whose field `other` is a value of the field `own`.
    ///
    /// Fields are named as in the schemas of their kinds; both are texts, or of one type. If `other` is `metadata.name`
    /// or `metadata.uid`, and `own` has one value, there is at most one associated object, and objects can be sorted by
    /// its fields.
    #[must_use]
    pub fn field(name: &str, kind: impl Into<Gvk>, own: &str, other: &str) -> Self {
        let by = By::Field {
            own: own.into(),
            other: other.into(),
        };
        Self::new(name, kind.into(), by)
    }

    /// Associates the object whose name is the value of a label.
    #[must_use]
    pub fn label(name: &str, kind: impl Into<Gvk>, key: &str) -> Self {
        Self::new(name, kind.into(), By::Label(key.into()))
    }

    /// Associates the owners of a kind; an object may have several.
    #[must_use]
    pub fn owner(name: &str, kind: impl Into<Gvk>) -> Self {
        let is_controller = false;
        Self::new(name, kind.into(), By::Owner { is_controller })
    }

    /// Associates the owner that is the controller, if it is of the kind.
    #[must_use]
    pub fn controller(name: &str, kind: impl Into<Gvk>) -> Self {
        let is_controller = true;
        Self::new(name, kind.into(), By::Owner { is_controller })
    }

    fn new(name: &str, kind: Gvk, by: By) -> Self {
        let name = name.into();
        Self { name, kind, by }
    }

    /// Returns the name that queries use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of the other objects.
    #[must_use]
    pub fn kind(&self) -> &Gvk {
        &self.kind
    }

    /// Returns whether a query can contain the name.
    pub(crate) fn has_name(&self) -> bool {
        is_name(&self.name)
    }

    /// Returns how objects are associated.
    pub(crate) fn by(&self) -> &By {
        &self.by
    }

    /// Returns the field of this kind that the association uses.
    pub(crate) fn own_field(&self) -> Option<&str> {
        match &self.by {
            By::Field { own, .. } => Some(own),
            _ => None,
        }
    }
}

/// Returns whether a text is the name of an association.
///
/// A name is an ASCII letter, followed by ASCII letters, digits, `_` and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(is_sign)
}
