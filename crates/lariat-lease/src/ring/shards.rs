//! What a program sees of its membership in a ring.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use lariat_core::{Gvk, ObjectMetadata, OwnerRef};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::gate::{Gate, Permit};
use super::share::{ShardKey, Share};
use crate::leadership::Leadership;

/// The share of this process in a ring; a clone shows the same.
///
/// It holds nothing until the process has joined, and after it has left or lost its lease.
#[derive(Clone)]
pub struct Shards {
    inner: Arc<Inner>,
}

struct Inner {
    leadership: Leadership,
    gate: Gate,
    content: RwLock<Content>,
    /// The kinds whose keys are handled by members.
    divided: RwLock<BTreeSet<Gvk>>,
    content_changes: watch::Sender<u64>,
}

/// Of which keys the content is worth to be kept.
struct Content {
    share: Share,
    /// The share before, while what left it is under way.
    before: Share,
}

impl Shards {
    pub(super) fn new(leadership: Leadership) -> Self {
        let content = Content {
            share: Share::none(),
            before: Share::none(),
        };
        Self {
            inner: Arc::new(Inner {
                leadership,
                gate: Gate::new(),
                content: RwLock::new(content),
                divided: RwLock::default(),
                content_changes: watch::Sender::new(0),
            }),
        }
    }

    /// Returns the share that this process handles.
    #[must_use]
    pub fn share(&self) -> Share {
        self.inner.gate.follow().borrow().clone()
    }

    /// Returns what shows each new share, from the present one on.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Share> {
        self.inner.gate.follow()
    }

    /// Returns the right to handle a key, or none if it belongs to another process.
    ///
    /// While it is held, no other process is given the key. It has to be dropped when the work has ended, and soon after
    /// [`Permit::revoked`] resolves.
    #[must_use]
    pub fn enter(&self, key: ShardKey) -> Option<Permit> {
        // A process that was suspended may be a member no more before its task has come to say so.
        let is_member = self.inner.leadership.leads();
        is_member.then(|| self.inner.gate.enter(key)).flatten()
    }

    /// Notes that members handle the keys of a kind.
    pub fn divide(&self, gvk: &Gvk) {
        self.inner.divided.write().insert(gvk.clone());
    }

    /// Returns whether the content of an object is worth to be cached by this process.
    ///
    /// That is so for the share that it has, is going to have once it has joined, or is about to hand over. Objects that no
    /// member handles belong to all: those without a controlling owner, of kinds that are not
    /// [divided](Self::divide).
    #[must_use]
    pub fn keeps(&self, gvk: &Gvk, object: &ObjectMetadata) -> bool {
        let is_controlled = || object.owners().iter().any(OwnerRef::is_controller);
        if !self.inner.divided.read().contains(gvk) && !is_controlled() {
            return true;
        }
        let key = ShardKey::of_object(gvk, object);
        let content = self.inner.content.read();
        content.share.holds(key) || content.before.holds(key)
    }

    /// Returns what changes whenever [`keeps`](Self::keeps) may answer otherwise.
    #[must_use]
    pub fn content_changes(&self) -> watch::Receiver<u64> {
        self.inner.content_changes.subscribe()
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// Keeps the content of a share from now on, and what leaves the share before until [`let_go`](Self::let_go).
    pub(super) fn keep(&self, share: &Share, grows: bool, shrinks: bool) {
        let mut content = self.inner.content.write();
        let before = std::mem::replace(&mut content.share, share.clone());
        content.before = if shrinks { before } else { Share::none() };
        drop(content);
        if grows {
            self.inner.content_changes.send_modify(|count| *count += 1);
        }
    }

    /// Keeps the content of the present share alone.
    pub(super) fn let_go(&self) {
        let mut content = self.inner.content.write();
        if content.before == Share::none() {
            return;
        }
        content.before = Share::none();
        drop(content);
        self.inner.content_changes.send_modify(|count| *count += 1);
    }

    /// Handles nothing any more.
    pub(super) fn end(&self) {
        self.inner.gate.set(&Share::none());
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards")
            .field("share", &self.share())
            .finish_non_exhaustive()
    }
}
