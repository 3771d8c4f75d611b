//! The readers of the database, shared among users.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time;

use super::status::Refusal;
use crate::access::User;

/// How long a query waits for other queries of its user.
const LONGEST: Duration = Duration::from_secs(30);
/// The number of users from which on those without a query are forgotten.
const USERS: usize = 256;

/// Lets each user read with a share of the readers, so that slow queries of one leave readers for others.
#[derive(Debug)]
pub(super) struct Turns {
    share: usize,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A query of a user that is being answered.
#[derive(Debug)]
pub(super) struct Turn {
    _permit: OwnedSemaphorePermit,
}

impl Turns {
    /// Gives each user half of the readers, or all of them if there is only one user.
    pub(super) fn new(readers: usize, has_one_user: bool) -> Self {
        let share = if has_one_user { readers } else { readers / 2 };
        Self {
            share: share.clamp(1, Semaphore::MAX_PERMITS),
            users: Mutex::default(),
        }
    }

    /// Waits until fewer queries of the user are being answered than its share.
    pub(super) async fn of(&self, user: &User) -> Result<Turn, Refusal> {
        let permit = time::timeout(LONGEST, self.permits(user).acquire_owned()).await;
        match permit {
            Ok(permit) => Ok(Turn {
                _permit: permit.expect("the semaphore is never closed"),
            }),
            Err(_) => Err(Refusal::busy_user("queries", self.share)),
        }
    }

    fn permits(&self, user: &User) -> Arc<Semaphore> {
        let mut users = self.users.lock();
        if let Some(known) = users.get(user.name()).and_then(Weak::upgrade) {
            return known;
        }
        if users.len() >= USERS {
            users.retain(|_, known| known.strong_count() > 0);
        }
        let permits = Arc::new(Semaphore::new(self.share));
        users.insert(user.name().to_owned(), Arc::downgrade(&permits));
        permits
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slow_queries_of_one_user_leave_readers_for_the_rest() {
        let turns = Turns::new(4, false);
        let (jane, admin) = (User::new("jane"), User::new("admin"));
        let first = turns.of(&jane).await.unwrap();
        let _second = turns.of(&jane).await.unwrap();
        assert!(turns.of(&jane).now_or_never().is_none());
        assert!(turns.of(&admin).now_or_never().is_some());
        let refused = turns.of(&jane).await.unwrap_err().status().to_string();
        assert!(
            refused.contains("your limit of 2 concurrent queries"),
            "{refused}"
        );
        drop(first);
        assert!(turns.of(&jane).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn users_without_queries_are_forgotten() {
        let turns = Turns::new(4, false);
        for number in 0..10 * USERS {
            drop(
                turns
                    .of(&User::new(format!("user-{number}")))
                    .await
                    .unwrap(),
            );
        }
        assert!(turns.users.lock().len() <= USERS);
    }
}
