//! Lists as mark and sweep: a page marks its objects, the end deletes unmarked objects.

use std::sync::Arc;

use lariat_core::{ObjectKey, RawObject, ResourceVersion, Scan};

use super::change::{Change, Content};
use super::object::CachedObject;
use super::objects::Indexing;
use super::table::{Age, Effect, Event};
use super::writer::{Kept, Writer, Writing};

/// A list in progress; its end deletes the objects that it did not contain.
///
/// Each list has a number. A listed object is marked with it, in the object itself, so a list needs no set of keys.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    /// The number of the list; 0 if its objects were read before it began.
    pub(super) begun: u64,
    /// The mark of the objects that it contains.
    mark: u32,
    /// Whether it fills the cache for the first time in this run.
    initial: bool,
    content: Content,
    /// Whether contents are compared, as equal versions may be different states.
    compares: bool,
    /// The listed namespace; `None` for all.
    pub(super) namespace: Option<Arc<str>>,
}

impl Listing {
    /// Creates the list of a number; the first number is 1.
    pub(super) fn new(
        begun: u64,
        initial: bool,
        content: Content,
        namespace: Option<Arc<str>>,
    ) -> Self {
        // Never 0, the mark of no list, nor the mark of the previous list.
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

    /// Declares that the objects were read before the list began, as from a file.
    ///
    /// Every write of this process may then be newer than the listed state.
    pub(crate) fn of_the_past(self) -> Self {
        Self { begun: 0, ..self }
    }

    /// Makes the list compare contents where versions are equal.
    ///
    /// The server may have been restored to an earlier state since the cached objects were read, and may have given
    /// their versions to other states.
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

    /// Returns whether a listed state is the cached one; marks the object if so.
    pub(super) fn is_known(&self, store: &Kept, scan: &Scan<'_>, key: &str) -> bool {
        // Its content must be read, whatever its version.
        if self.compares {
            return false;
        }
        // Under the lock: repacking replaces objects under it, and a mark on a replaced object would be lost.
        let mut writing = store.writing();
        let known = writing.known(key).filter(|known| {
            scan.is_state(known.uid(), known.version())
                && known.has_content() == store.wants_content(self.content, known)
        });
        if let Some(known) = &known {
            known.mark_listed(self.mark);
            writing.confirm(known);
        }
        known.is_some()
    }

    /// Applies the objects of a page.
    pub(super) fn page(&self, mut writing: Writing<'_>, page: Vec<RawObject>) -> Vec<Change> {
        for object in page {
            self.put(&mut writing, object);
        }
        writing.finish()
    }

    /// Marks a cached object as listed and keeps it, whatever its state on the page.
    pub(super) fn mention(&self, known: Option<Arc<CachedObject>>) {
        if let Some(known) = known {
            known.mark_listed(self.mark);
        }
    }

    /// Ends the list: deletes the objects it did not contain, unless this process wrote them since.
    pub(super) fn end(&self, mut writing: Writing<'_>, version: &ResourceVersion) -> Vec<Change> {
        // Objects that have no mark, although the list covers them.
        writing.remove_where(|writer: &Writer, object: &CachedObject| {
            let is_missing = object.listed_by() != self.mark && self.covers(object.key());
            is_missing.then(|| writer.own.missing(self.begun, version, object))
        });
        // The list shows all writes that were answered before it began.
        let own = &mut writing.writer.own;
        own.end_listing(self.begun, |key| self.covers(key));
        writing.writer.reached.end(self.namespace.as_ref(), version);
        writing.finish()
    }

    /// Applies an object of a page.
    fn put(&self, writing: &mut Writing<'_>, object: RawObject) {
        let known = writing.known(object.key().as_str());
        let event = self.event(writing, &object, known.as_deref());
        let effect = writing.step(event, &object, known.as_deref());
        if effect == Effect::Ignored {
            // The list may have been read before a write of this process that the store contains already.
            return self.mention(known);
        }
        let new = writing.listed(object, self.content);
        // Before it is inserted: the end of the list must find the mark on any object that was listed.
        new.mark_listed(self.mark);
        match known {
            Some(known) if effect == Effect::Noted => {
                match (known.has_content(), new.has_content()) {
                    // Indexes that read content index it now.
                    (false, true) => writing.put_new(new),
                    // The indexes keep its values from when it had content.
                    (true, false) => writing.put(new, Indexing::Keep),
                    _ => known.mark_listed(self.mark),
                }
            }
            // Another state, or another object of the same name.
            known => {
                writing.publish(known, &new, self.initial);
                writing.put_new(new);
            }
        }
    }

    /// Returns the event of a listed object.
    fn event(
        &self,
        writing: &mut Writing<'_>,
        object: &RawObject,
        known: Option<&CachedObject>,
    ) -> Event {
        let event = writing.writer.own.listed(self.begun, object, known);
        match (event, known) {
            // The version was given to two states.
            (Event::Listed(Age::Same, view), Some(known))
                if self.shows_other(writing, known, object) =>
            {
                Event::Listed(Age::Unordered, view)
            }
            (event, _) => event,
        }
    }

    /// Returns whether a comparing list shows other content than the cached one.
    fn shows_other(&self, writing: &Writing<'_>, known: &CachedObject, object: &RawObject) -> bool {
        self.compares
            && writing.store.is_comparable(known, self.content)
            && !known.has_same_content(object.json())
    }
}
