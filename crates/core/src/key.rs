//! The identity of an object within its kind.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Namespace and name of an object: the key of every cache and queue.
///
/// The text form is client-go's: `namespace/name`, or `name` for a cluster-scoped object. Keys are ordered by that
/// text, which is the order of the API server's lists. Cloning is cheap: clones share the text.
///
/// ```
/// use lariat::ObjectKey;
///
/// let key: ObjectKey = "shop/web-0".parse()?;
/// assert_eq!(key, ObjectKey::namespaced("shop", "web-0"));
/// assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-0"));
/// # Ok::<(), lariat::core::ParseKeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// Creates the key of a namespaced object.
    ///
    /// With an empty namespace, it is the key of a cluster-scoped object. Kubernetes forbids `/` in names. A key with
    /// such a name is accepted here but matches no object of an API server. Parse texts from users with [`FromStr`],
    /// which rejects them.
    ///
    /// ```
    /// use lariat::ObjectKey;
    ///
    /// assert_eq!(ObjectKey::namespaced("shop", "web-0").to_string(), "shop/web-0");
    /// assert_eq!(ObjectKey::namespaced("", "node-1"), ObjectKey::cluster("node-1"));
    /// ```
    #[must_use]
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            return Self::cluster(name);
        }
        let mut text = String::with_capacity(namespace.len() + 1 + name.len());
        text.push_str(namespace);
        text.push('/');
        text.push_str(name);
        Self(text.into())
    }

    /// Creates the key of a cluster-scoped object.
    ///
    /// ```
    /// use lariat::ObjectKey;
    ///
    /// assert_eq!(ObjectKey::cluster("node-1").namespace(), None);
    /// ```
    #[must_use]
    pub fn cluster(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the namespace; `None` for a cluster-scoped object.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('/').map(|(namespace, _)| namespace)
    }

    /// Returns the name without the namespace.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// Returns `namespace/name`, or `name` for a cluster-scoped object.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        let mut parts = text.split('/');
        let well_formed = parts.by_ref().take(2).all(|part| !part.is_empty());
        if well_formed && parts.next().is_none() {
            Ok(Self(text.into()))
        } else {
            Err(ParseKeyError { text: text.into() })
        }
    }
}

// A key hashes, compares and orders like its text, as `Borrow` requires. So maps with such keys can be searched by
// `&str`.
impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({})", self.0)
    }
}

/// A text that is neither `name` nor `namespace/name`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an object key: expected \"name\" or \"namespace/name\"")]
pub struct ParseKeyError {
    /// The text.
    text: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_client_go_s() {
        assert_eq!(ObjectKey::namespaced("a", "b").to_string(), "a/b");
        assert_eq!(ObjectKey::cluster("b").to_string(), "b");
        assert_eq!(ObjectKey::namespaced("", "b"), ObjectKey::cluster("b"));
        assert_eq!(ObjectKey::cluster("b").namespace(), None);
    }

    #[test]
    fn malformed_texts_are_refused_by_name() {
        for text in ["", "/", "a/", "/b", "a/b/c"] {
            let error = text.parse::<ObjectKey>().unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("{text:?}")),
                "{error}"
            );
        }
    }

    #[test]
    fn keys_order_as_the_api_server_lists() {
        // "-" sorts before "/", so namespace "a-b" comes before namespace "a" in etcd's key order.
        let mut keys = [
            ObjectKey::namespaced("a", "x"),
            ObjectKey::namespaced("a-b", "x"),
            ObjectKey::namespaced("a", "b"),
        ];
        keys.sort();
        assert_eq!(keys.map(|key| key.to_string()), ["a-b/x", "a/b", "a/x"]);
    }

    #[test]
    fn a_key_costs_two_words() {
        assert_eq!(size_of::<ObjectKey>(), 16);
    }
}
