//! What a reflector tells a store.

use std::sync::Arc;

use lariat_core::{ObjectKey, RawObject};

/// What the reflector learned about one object from a watch.
#[derive(Debug)]
pub(crate) enum Delta {
    /// The object is there, in this state.
    Present(RawObject),
    /// The object is gone; this was its last state.
    Gone(RawObject),
}

/// How much of each object the reflector reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Content {
    /// The whole object.
    #[default]
    Whole,
    /// Its metadata.
    MetadataOnly,
}

/// A list in progress: what it does not mention by its end is gone.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    pub(super) number: u32,
    pub(super) initial: bool,
    pub(super) content: Content,
    /// Whether equal versions may be of two histories, so that contents are compared.
    pub(super) compares: bool,
    /// The namespace that is listed; none for all.
    namespace: Option<Arc<str>>,
}

impl Listing {
    /// Begins a list after `earlier` others of the same store, whoever read them.
    pub(crate) fn after(earlier: u32, initial: bool, content: Content) -> Self {
        Self {
            // Never 0, which is the number of no list, and never the number of the list before.
            number: earlier % (u32::MAX - 1) + 1,
            initial,
            content,
            compares: false,
            namespace: None,
        }
    }

    /// Restricts the list to a namespace.
    pub(crate) fn of_namespace(self, namespace: Option<Arc<str>>) -> Self {
        Self { namespace, ..self }
    }

    /// Makes the list compare contents where versions are equal: the server may have gone back to an earlier state since
    /// the objects that are known were read, and have given their versions to other states.
    pub(crate) fn comparing(self) -> Self {
        Self {
            compares: true,
            ..self
        }
    }

    pub(super) fn covers(&self, key: &ObjectKey) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|namespace| key.namespace() == Some(namespace))
    }
}
