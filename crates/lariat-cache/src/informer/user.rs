//! Knowing whether anybody still uses a kind.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A share in the use of a kind: informers, caches, subscriptions and streams of changes have one.
pub(crate) struct User {
    usage: Weak<Usage>,
}

/// Who uses a kind.
pub(crate) struct Usage {
    state: Mutex<State>,
    /// Told when nobody uses the kind any more.
    idle: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// What all users of the moment share.
    user: Weak<User>,
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

    /// Begins to use the kind, or joins those who do.
    pub(crate) fn begin(self: &Arc<Self>) -> Arc<User> {
        let mut state = self.state.lock();
        if let Some(user) = state.user.upgrade() {
            return user;
        }
        let user = Arc::new(User {
            usage: Arc::downgrade(self),
        });
        *state = State {
            user: Arc::downgrade(&user),
            idle_since: None,
        };
        user
    }

    /// Returns since when nobody has used the kind.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let mut state = self.state.lock();
        if state.user.strong_count() > 0 {
            return None;
        }
        Some(*state.idle_since.get_or_insert_with(Instant::now))
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
