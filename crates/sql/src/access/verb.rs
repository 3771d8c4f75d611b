//! The verbs of reviews.

use std::fmt;

/// What a user wants to do with objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// To read single objects, by their names.
    Get,
    /// To read all objects.
    List,
    /// To receive changes.
    Watch,
}

impl Verb {
    /// Returns the verb as RBAC rules contain it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
