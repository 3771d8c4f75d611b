//! The budget of reviews: how many are sent about each user.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lariat_http::{Rate, User};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The number of users above which those with an unspent budget are forgotten.
const USERS: usize = 1_024;

/// Counts the reviews about each user.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) rate: Rate,
    /// The time at which the budget is whole again, by the name of the user.
    full: Arc<Mutex<HashMap<String, std::time::Instant>>>,
}

impl Budget {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            full: Arc::default(),
        }
    }

    /// Returns the wait until this many reviews are allowed; zero if they are now.
    pub(super) fn wait(&self, user: &User, reviews: usize) -> Duration {
        let full = self.full.lock().get(user.name()).copied();
        self.rate.wait(full, reviews, Instant::now().into_std())
    }

    /// Spends a review.
    ///
    /// Users are identified by their names: other properties may differ from token to token.
    pub(super) fn spend(&self, user: &User) {
        let now = Instant::now().into_std();
        let mut users = self.full.lock();
        if let Some(full) = users.get_mut(user.name()) {
            *full = self.rate.spend(Some(*full), now);
            return;
        }
        if users.len() >= USERS {
            users.retain(|_, full| *full > now);
        }
        users.insert(user.name().to_owned(), self.rate.spend(None, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn users_who_have_spent_nothing_are_forgotten() {
        let budget = Budget::new(Rate::new(10, Duration::from_secs(10)));
        for number in 0..10 * USERS {
            budget.spend(&User::new(format!("user-{number}")));
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        assert!(budget.full.lock().len() <= USERS);
    }
}
