//! Lists: what a page mentions is there, and what no page has mentioned by the end is gone.

use std::sync::Arc;

use lariat_core::{ObjectKey, RawObject, ResourceVersion, Scan};

use super::change::{Change, Content};
use super::object::CachedObject;
use super::objects::Indexing;
use super::writer::{Kept, Writer, Writing, is_same_state};

/// A list in progress: what it does not mention by its end is gone.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    /// How many lists of the store have begun with it; 0 if it shows an earlier time than when it began.
    pub(super) begun: u64,
    /// What the objects it mentions are marked with.
    mark: u32,
    /// Whether the cache is being filled, rather than brought up to date.
    initial: bool,
    content: Content,
    /// Whether equal versions may be of two histories, so that contents are compared.
    compares: bool,
    /// The namespace that is listed; none for all.
    pub(super) namespace: Option<Arc<str>>,
}

impl Listing {
    /// Numbers a list, from 1.
    pub(super) fn new(
        begun: u64,
        initial: bool,
        content: Content,
        namespace: Option<Arc<str>>,
    ) -> Self {
        // Never 0, which is the mark of no list, and never the mark of the list before.
        let mark = (begun - 1) % u64::from(u32::MAX - 1) + 1;
        Self {
            begun,
            mark: u32::try_from(mark).unwrap_or(u32::MAX),
            initial,
            content,
            compares: false,
            namespace,
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

    /// Returns whether the list shows nothing new about an object, and marks it as mentioned.
    pub(super) fn is_known(&self, store: &Kept, scan: &Scan<'_>, key: &str) -> bool {
        if self.compares {
            return false;
        }
        // Repacking replaces objects under this lock, and a mark on one that was replaced would be lost.
        let writing = store.writing();
        let known = writing.known(key).filter(|known| {
            scan.is_state(known.uid(), known.version())
                && known.has_content() == store.wants_content(self.content, known)
        });
        known.inspect(|known| known.see(self.mark)).is_some()
    }

    /// Takes in a page.
    pub(super) fn page(&self, mut writing: Writing<'_>, page: Vec<RawObject>) -> Vec<Change> {
        for object in page {
            self.put(&mut writing, object);
        }
        writing.finish()
    }

    /// Notes that the list mentions an object, in whatever state: the one that is known stays.
    pub(super) fn mention(&self, known: Option<Arc<CachedObject>>) {
        if let Some(known) = known {
            known.see(self.mark);
        }
    }

    /// Ends the list: what it did not mention is gone, unless this process wrote it since.
    pub(super) fn end(&self, mut writing: Writing<'_>, version: &ResourceVersion) -> Vec<Change> {
        let is_gone = |writer: &Writer, object: &CachedObject| {
            object.seen_by() != self.mark
                && self.covers(object.key())
                && !writer.own.is_after(object, self.begun, version)
        };
        writing.remove_where(is_gone);
        let own = &mut writing.writer.own;
        own.end_listing(self.begun, |key| self.covers(key));
        writing.writer.reached.end(self.namespace.as_ref(), version);
        writing.finish()
    }

    /// Takes in an object of a page. One in the state that is known stays as it is.
    fn put(&self, writing: &mut Writing<'_>, object: RawObject) {
        let known = writing.known(object.key().as_str());
        if writing.writer.own.outdates_listed(self.begun, &object) {
            return self.mention(known);
        }
        let is_other_state = |known: &Arc<CachedObject>| self.shows_other(writing, known, &object);
        let is_other_state = known.as_ref().is_some_and(is_other_state);
        let new = writing.listed(object, self.content);
        new.see(self.mark);
        match known {
            Some(known) if is_same_state(&known, &new) && !is_other_state => {
                match (known.has_content(), new.has_content()) {
                    // Indexes that read content find it now …
                    (false, true) => writing.put_new(new),
                    // … and keep what they found while it was here.
                    (true, false) => writing.put(new, Indexing::Same),
                    _ => known.see(self.mark),
                }
            }
            known => {
                writing.publish(known, &new, self.initial);
                writing.put_new(new);
            }
        }
    }

    /// Returns whether a list that compares contents finds another than the one that is known.
    fn shows_other(&self, writing: &Writing<'_>, known: &CachedObject, object: &RawObject) -> bool {
        self.compares
            && writing.store.is_comparable(known, self.content)
            && !known.has_same_content(object.json())
    }
}
