//! Permissions: rules on known resources, merged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Verbs that a program needs on a resource, with the reasons for each.
///
/// Its `Display` is like `list, watch pods in shop (for reconciler web of apps/v1 Deployment)`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Permission {
    /// The API group; empty for core.
    pub group: String,
    /// The plural resource name.
    pub resource: String,
    /// The subresource; empty for none.
    pub subresource: String,
    /// The names of the objects; empty for all.
    pub names: Vec<String>,
    /// The namespaces; empty for all, and for cluster-scoped resources.
    pub namespaces: Vec<String>,
    /// The verbs, each with the reasons for it.
    pub verbs: BTreeMap<String, BTreeSet<String>>,
}

impl Permission {
    /// Returns the resource as in RBAC rules, such as `pods` or `pods/status`.
    #[must_use]
    pub fn path(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }

    /// Returns the reasons for all verbs.
    #[must_use]
    pub fn because(&self) -> BTreeSet<&str> {
        self.verbs.values().flatten().map(String::as_str).collect()
    }

    /// Returns the permission with some of its verbs, or `None` if there are none.
    pub(super) fn with_verbs(&self, wanted: impl Fn(&str) -> bool) -> Option<Self> {
        let mut verbs = self.verbs.clone();
        verbs.retain(|verb, _| wanted(verb));
        let some = !verbs.is_empty();
        some.then(|| Self {
            verbs,
            ..self.clone()
        })
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<&str> = self.verbs.keys().map(String::as_str).collect();
        write!(f, "{} {}", verbs.join(", "), self.resource)?;
        // As kubectl writes it: `widgets.demo.dev/status`.
        for (before, part) in [('.', &self.group), ('/', &self.subresource)] {
            if !part.is_empty() {
                write!(f, "{before}{part}")?;
            }
        }
        if !self.names.is_empty() {
            write!(f, " named {}", self.names.join(", "))?;
        }
        if !self.namespaces.is_empty() {
            write!(f, " in {}", self.namespaces.join(", "))?;
        }
        let because: Vec<&str> = self.because().into_iter().collect();
        if because.is_empty() {
            Ok(())
        } else {
            write!(f, " (for {})", because.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subresource_comes_after_the_group() {
        let because = BTreeSet::from(["reconciler web".to_owned()]);
        let permission = Permission {
            group: "demo.dev".to_owned(),
            resource: "widgets".to_owned(),
            subresource: "finalizers".to_owned(),
            names: Vec::new(),
            namespaces: Vec::new(),
            verbs: BTreeMap::from([("update".to_owned(), because)]),
        };
        assert_eq!(
            permission.to_string(),
            "update widgets.demo.dev/finalizers (for reconciler web)"
        );
    }
}
