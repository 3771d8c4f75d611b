//! Limits on concurrent requests and watches: in total, and per user.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::status::Refusal;
use crate::access::User;

/// The number of permits of each user, by name; never zero.
type Users = Arc<Mutex<HashMap<String, usize>>>;

/// A limited number of permits, for requests or watches.
#[derive(Debug)]
pub(super) struct Room {
    what: &'static str,
    limit: usize,
    limit_of_user: usize,
    permits: Arc<Semaphore>,
    users: Users,
}

/// A permit of a user; dropping it returns it.
#[derive(Debug)]
pub(super) struct RoomPermit {
    users: Users,
    user: String,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new(what: &'static str, limit: usize, limit_of_user: usize) -> Self {
        let limit = limit.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            what,
            limit,
            limit_of_user: limit_of_user.max(1),
            permits: Arc::new(Semaphore::new(limit)),
            users: Users::default(),
        }
    }

    /// Takes a permit for a user; fails if none is free.
    ///
    /// Users are identified by their names: other properties of a user may differ from token to token.
    pub(super) fn take(&self, user: &User) -> Result<RoomPermit, Refusal> {
        let mut users = self.users.lock();
        // The user's own limit is reported first.
        let count = users.get(user.name()).copied().unwrap_or_default();
        if count >= self.limit_of_user {
            return Err(Refusal::busy_user(self.what, self.limit_of_user));
        }
        let permit = Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|_| Refusal::busy(self.what, self.limit))?;
        users.insert(user.name().to_owned(), count + 1);
        Ok(RoomPermit {
            users: Arc::clone(&self.users),
            user: user.name().to_owned(),
            _permit: permit,
        })
    }
}

impl Drop for RoomPermit {
    fn drop(&mut self) {
        let mut users = self.users.lock();
        if let Some(count) = users.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_room_for_others_and_released_places_leave_no_entry() {
        let room = Room::new("watches", 3, 2);
        let (jane, joe) = (User::new("jane"), User::new("joe"));
        // Another token, the same user.
        let again = User::new("jane").extra("credential-id", ["2"]);
        let first = room.take(&jane).unwrap();
        let _second = room.take(&again).unwrap();
        let refused = room.take(&jane).unwrap_err().status().to_string();
        let expected = "your limit of 2 concurrent watches is reached";
        assert!(refused.contains(expected), "{refused}");
        let third = room.take(&joe).unwrap();
        let full = room.take(&joe).unwrap_err().status().to_string();
        let expected = "the limit of 3 concurrent watches is reached";
        assert!(full.contains(expected), "{full}");
        drop(first);
        let _first = room.take(&jane).unwrap();
        drop(third);
        assert_eq!(room.users.lock().len(), 1);
    }
}
