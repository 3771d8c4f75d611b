//! The verbs of Kubernetes, and how requests say them.

use http::Method;

use super::route::Target;

/// A Kubernetes verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Returns the verb of a request, or `None` for a method without a meaning.
    pub(crate) fn of(method: &Method, target: &Target, watch: bool) -> Option<Self> {
        // Such a path says the verb itself; whether it has a method is another question.
        if target.watches {
            return Some(Self::Watch);
        }
        // An eviction or a binding, for example, creates something below an object that the path names.
        if *method == Method::POST && target.subresource.is_some() {
            return Some(Self::Create);
        }
        Some(match (method, target.name.is_some()) {
            (&Method::GET, true) => Self::Get,
            (&Method::GET, false) if watch => Self::Watch,
            (&Method::GET, false) => Self::List,
            (&Method::POST, false) => Self::Create,
            (&Method::PUT, true) => Self::Update,
            (&Method::PATCH, true) => Self::Patch,
            (&Method::DELETE, true) => Self::Delete,
            (&Method::DELETE, false) => Self::DeleteCollection,
            _ => return None,
        })
    }

    /// Returns the verb of a method that the handlers of custom resources answer.
    ///
    /// Those handlers name the object themselves, and take HEAD for GET.
    pub(crate) fn of_custom(method: &Method, target: &Target, watch: bool) -> Option<Self> {
        let is_named = target.name.is_some();
        match *method {
            Method::HEAD => Self::of(&Method::GET, target, watch),
            Method::POST if is_named => Some(Self::Create),
            Method::PUT if !is_named => Some(Self::Update),
            Method::PATCH if !is_named => Some(Self::Patch),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}
