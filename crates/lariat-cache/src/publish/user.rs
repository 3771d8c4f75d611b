//! Knowing whether anybody still uses a kind.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A share in the use of a kind: informers, caches, subscriptions and streams of changes have one.
pub(crate) struct User {
    usage: Weak<Usage>,
    /// Whether a start does not wait for the kind on its account.
    is_optional: bool,
}

/// Who uses a kind.
pub(crate) struct Usage {
    state: Mutex<Users>,
    /// Notified when nobody uses the kind any more.
    idle: Arc<Notify>,
}

#[derive(Default)]
struct Users {
    /// What all users of the moment share, those a start waits for and the others.
    users: [Weak<User>; 2],
    /// Since when there has been none.
    idle_since: Option<Instant>,
}

impl Usage {
    pub(crate) fn new(idle: Arc<Notify>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            idle,
        })
    }

    /// Begins to use the kind, or joins those who do; a start waits only for kinds with users that are not
    /// optional.
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

    /// Returns whether there is somebody a start waits for.
    pub(crate) fn is_required(&self) -> bool {
        self.state.lock().users[0].strong_count() > 0
    }

    /// Returns since when nobody has used the kind.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        if state.users.iter().any(|user| user.strong_count() > 0) {
            return None;
        }
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
