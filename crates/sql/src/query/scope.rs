//! Scopes: the fields and accesses that a query is checked against.

use std::sync::Arc;

use lariat_core::Gvk;

use super::error::QueryError;
use crate::access::Access;
use crate::associated::Associated;
use crate::schema::Schema;

/// The visible part of a kind and of its associated kinds.
///
/// The default allows everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    /// The accesses; all of them must allow an object.
    pub(crate) accesses: Arc<[Access]>,
    /// The accesses for other kinds.
    ///
    /// If the kind itself is restricted, queries cannot refer to kinds that are not listed here.
    pub(crate) others: Arc<[(Gvk, Access)]>,
}

/// The schemas and accesses that a query is checked against.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) schema: &'a Schema,
    /// The other kinds of the schema's associations, in order.
    pub(crate) others: &'a [Associated],
    pub(crate) view: &'a View,
}

impl View {
    /// Returns the accesses for another kind.
    fn of(&self, kind: &Gvk) -> impl Iterator<Item = &Access> {
        let of_kind = self.others.iter().filter(move |(of, _)| of == kind);
        of_kind.map(|(_, access)| access)
    }
}

impl Scope<'_> {
    /// Finds an association by its name; also returns its position.
    ///
    /// # Errors
    ///
    /// Fails if there is none, or queries may not use its kind.
    pub(super) fn association(&self, name: &str) -> Result<(usize, &Associated), QueryError> {
        let associations = self.schema.associations();
        let place = associations.iter().position(|each| each.name() == name);
        let found = place.and_then(|place| Some((place, self.others.get(place)?)));
        let Some((place, other)) = found else {
            return Err(QueryError::UnknownAssociation {
                kind: self.schema.gvk().clone(),
                association: name.to_owned(),
                known: associations.iter().map(|it| it.name().to_owned()).collect(),
            });
        };
        let kind = other.schema.gvk();
        let is_restricted = !self.view.accesses.is_empty();
        if is_restricted && !self.view.others.iter().any(|(of, _)| of == kind) {
            return Err(QueryError::Association {
                association: name.to_owned(),
                reason: format!(
                    "the access to {kind} is not known: add it with SqlKind::restricted_associated"
                ),
            });
        }
        Ok((place, other))
    }

    /// Returns the accesses for the kind of each association.
    pub(super) fn accesses(&self) -> Arc<[Vec<Access>]> {
        let others = self
            .others
            .iter()
            .map(|other| self.view.of(other.schema.gvk()).cloned().collect());
        others.collect()
    }

    /// Returns the accesses for the namespaces that a query selects by a label.
    ///
    /// # Errors
    ///
    /// Fails if they are not known.
    pub(super) fn namespaces(&self, label: &str) -> Result<Vec<Access>, QueryError> {
        let accesses: Vec<Access> = self
            .view
            .of(&Gvk::new("", "v1", "Namespace"))
            .cloned()
            .collect();
        if !self.view.accesses.is_empty() && accesses.is_empty() {
            return Err(QueryError::NamespaceLabel {
                label: label.to_owned(),
                reason: "the access to v1 Namespace is not known: add it with SqlKind::restricted_associated",
            });
        }
        Ok(accesses)
    }
}

#[cfg(test)]
impl<'a> Scope<'a> {
    /// Creates a scope without associations and restrictions.
    pub(crate) fn of(schema: &'a Schema) -> Self {
        static VIEW: std::sync::LazyLock<View> = std::sync::LazyLock::new(View::default);
        Self {
            schema,
            others: &[],
            view: &VIEW,
        }
    }
}
