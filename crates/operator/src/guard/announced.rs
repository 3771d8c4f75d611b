//! The writes that were counted in advance, together with the deletion before them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::time::Instant;

/// A kind: its API path and plural.
pub(super) type Kind = Arc<(String, String)>;

/// The bound of the objects whose announced writes are remembered.
///
/// Beyond it an announced write is counted once more.
const MOST: usize = 1_024;

/// How long a write stays announced; later it is counted as any other write.
///
/// The object may not be wanted any more by then. One with finalizers may take long to be deleted.
const LASTS: Duration = Duration::from_secs(3600);

/// An object with announced writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Announced {
    pub(super) kind: Kind,
    pub(super) key: ObjectKey,
}

/// The announced writes that have not succeeded yet.
#[derive(Debug, Default)]
pub(super) struct Announcements(HashMap<Announced, Announcement>);

/// The announced writes of an object.
#[derive(Debug)]
struct Announcement {
    writes: usize,
    /// The number of deletions that were counted before them.
    ///
    /// There is more than one if the first has not removed the object.
    deletions: usize,
    until: Instant,
}

impl Announcements {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns whether a write of an object is announced.
    pub(super) fn has(&self, object: &Announced, now: Instant) -> bool {
        self.0.get(object).is_some_and(|found| now < found.until)
    }

    /// Remembers the writes that follow a deletion; returns whether there is room.
    ///
    /// They replace the writes that follow an earlier deletion of the object, which are the same ones.
    pub(super) fn add(&mut self, object: Announced, writes: usize, now: Instant) -> bool {
        if self.0.len() >= MOST {
            self.0.retain(|_, found| now < found.until);
        }
        let deletions = match self.0.get(&object) {
            Some(found) if now < found.until => found.deletions + 1,
            None if self.0.len() >= MOST => return false,
            _ => 1,
        };
        let until = now + LASTS;
        let announcement = Announcement {
            writes,
            deletions,
            until,
        };
        self.0.insert(object, announcement);
        true
    }

    /// Forgets a deletion that was not executed, and what it alone has announced.
    pub(super) fn give_back(&mut self, object: &Announced) {
        if let Some(found) = self.0.get_mut(object) {
            found.deletions -= 1;
            if found.deletions == 0 {
                self.0.remove(object);
            }
        }
    }

    /// Forgets a write that has succeeded.
    pub(super) fn use_up(&mut self, object: &Announced) {
        if let Some(found) = self.0.get_mut(object) {
            found.writes -= 1;
            if found.writes == 0 {
                self.0.remove(object);
            }
        }
    }
}
