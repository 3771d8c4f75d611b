//! Uses of a kind: whether it is in use, and whether a start waits for it.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A use of a kind: by informers, caches, subscriptions or streams of changes.
pub(crate) struct User {
    usage: Weak<Usage>,
    /// Whether starts do not wait for the kind on account of this use.
    is_optional: bool,
}

/// The uses of a kind.
pub(crate) struct Usage {
    state: Mutex<Users>,
    /// Notified when the kind may have become unused.
    idle: Arc<Notify>,
}

#[derive(Default)]
struct Users {
    /// The current uses, shared: a required one and an optional one.
    users: [Weak<User>; 2],
    /// Since when there has been no use.
    idle_since: Option<Instant>,
}

impl Usage {
    pub(crate) fn new(idle: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            idle,
        })
    }

    /// Begins a use of the kind, or joins the existing one.
    ///
    /// A start waits only for kinds with a required use.
    pub(crate) fn begin(self: &Arc<Self>, is_optional: bool) -> Arc<User> {
        let mut state = self.state.lock();
        let place = &mut state.users[usize::from(is_optional)];
        if let Some(user) = place.upgrade() {
            return user;
        }
        let user = Arc::new(User {
            usage: Arc::downgrade(self),
            is_optional,
        });
        *place = Arc::downgrade(&user);
        state.idle_since = None;
        user
    }

    /// Returns whether there is a use for which a start waits.
    pub(crate) fn is_required(&self) -> bool {
        self.state.lock().users[0].strong_count() > 0
    }

    /// Returns since when the kind has been unused; `None` if it is in use.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        if state.users.iter().any(|user| user.strong_count() > 0) {
            return None;
        }
        // The time begins when this first finds the kind unused; the drop of the last use leads here by its
        // notification.
        Some(*state.idle_since.get_or_insert_with(Instant::now))
    }
}

impl User {
    pub(crate) fn is_optional(&self) -> bool {
        self.is_optional
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(usage) = self.usage.upgrade() {
            usage.idle.notify_one();
        }
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("User")
    }
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Usage")
    }
}
