//! The operation of a request, as admission sees it.

use std::fmt;

/// The operation of a request, as admission sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is updated, by an update, a patch or an apply.
    Update,
    /// The object is deleted; there is only the old object.
    Delete,
    /// A client connects to a subresource, such as `exec` or `proxy`.
    Connect,
}

impl Operation {
    /// Returns the operation with a name, as in requests and configurations.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Create, Self::Update, Self::Delete, Self::Connect];
        all.into_iter().find(|operation| operation.as_str() == name)
    }

    /// Returns the name of the operation, such as `CREATE`.
    ///
    /// ```
    /// use lariat_core::Operation;
    ///
    /// assert_eq!(Operation::Create.as_str(), "CREATE");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
