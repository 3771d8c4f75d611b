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

impl Delta {
    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::Present(object) | Self::Gone(object) => object.key(),
        }
    }
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
    /// How many lists of the store have begun with it; 0 if it shows an earlier time than when it began.
    pub(super) begun: u64,
    /// What the objects it mentions are marked with.
    pub(super) mark: u32,
    /// Whether the cache is being filled, rather than brought up to date.
    pub(super) initial: bool,
    pub(super) content: Content,
    /// Whether equal versions may be of two histories, so that contents are compared.
    pub(super) compares: bool,
    /// The namespace that is listed; none for all.
    pub(super) namespace: Option<Arc<str>>,
}

impl Listing {
    /// Numbers a list, from 1.
    pub(super) fn new(begun: u64, initial: bool, content: Content) -> Self {
        // Never 0, which is the mark of no list, and never the mark of the list before.
        let mark = (begun - 1) % u64::from(u32::MAX - 1) + 1;
        Self {
            begun,
            mark: u32::try_from(mark).unwrap_or(u32::MAX),
            initial,
            content,
            compares: false,
            namespace: None,
        }
    }

    /// Says that what is listed was read before the list began, as from a file: every write of this process may be
    /// newer.
    pub(crate) fn of_the_past(self) -> Self {
        Self { begun: 0, ..self }
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
