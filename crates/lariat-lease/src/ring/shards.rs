//! The share of a process in a ring.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use lariat_core::{Gvk, ObjectMetadata, OwnerRef};
use parking_lot::RwLock;
use tokio::sync::watch;

use super::gate::{Gate, Permit};
use super::share::{ShardKey, Share};
use crate::leadership::Leadership;

/// The share of this process in a ring; a clone is the same.
///
/// It is empty until the process has joined, and after it has left or lost its lease.
///
/// ```no_run
/// use lariat_core::{Gvk, ObjectKey};
/// use lariat_lease::{ShardKey, Shards};
///
/// # fn example(shards: &Shards) {
/// let key = ShardKey::of_key(&Gvk::new("", "v1", "Pod"), &ObjectKey::namespaced("shop", "web-0"));
/// if let Some(_permit) = shards.enter(key) {
///     // No other process handles the key until the permit is dropped.
/// }
/// # }
/// ```
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

/// The shares whose content is cached.
struct Content {
    share: Share,
    /// The previous share, while calls for the keys it lost are running.
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

    /// Returns a receiver of the share and its changes.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Share> {
        self.inner.gate.follow()
    }

    /// Returns the permission to handle a key; `None` if it belongs to another process.
    ///
    /// While the permit exists, no other process gets the key. Drop it when the work has ended, and soon after
    /// [`Permit::revoked`] resolves.
    #[must_use]
    pub fn enter(&self, key: ShardKey) -> Option<Permit> {
        // A process that was suspended may not be a member any more before its task has noticed.
        let is_member = self.inner.leadership.leads();
        is_member.then(|| self.inner.gate.enter(key)).flatten()
    }

    /// Declares that members handle the keys of a kind.
    pub fn divide(&self, gvk: &Gvk) {
        self.inner.divided.write().insert(gvk.clone());
    }

    /// Returns whether this process should cache the content of an object.
    ///
    /// That is so for the share that it has, will have once it has joined, or is about to hand over. Objects that no
    /// member handles belong to all: those of kinds that are not [divided](Self::divide), if they have no controlling
    /// owner.
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

    /// Returns a receiver that changes whenever [`keeps`](Self::keeps) may change.
    #[must_use]
    pub fn content_changes(&self) -> watch::Receiver<u64> {
        self.inner.content_changes.subscribe()
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// Keeps the content of a new share.
    ///
    /// That of lost keys is kept until [`let_go`](Self::let_go).
    pub(super) fn keep(&self, share: &Share, grows: bool, shrinks: bool) {
        let mut content = self.inner.content.write();
        let before = std::mem::replace(&mut content.share, share.clone());
        content.before = if shrinks { before } else { Share::none() };
        drop(content);
        if grows {
            self.inner.content_changes.send_modify(|count| *count += 1);
        }
    }

    /// Keeps only the content of the present share.
    pub(super) fn let_go(&self) {
        let mut content = self.inner.content.write();
        if content.before == Share::none() {
            return;
        }
        content.before = Share::none();
        drop(content);
        self.inner.content_changes.send_modify(|count| *count += 1);
    }

    /// Admits no key any more.
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
