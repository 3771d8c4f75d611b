//! A cache of the API server's answers to reviews.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// The maximum number of answers.
pub(crate) const MOST: usize = 1_000;
/// How long an expired answer that was no refusal is remembered.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// Answers by question; an answer is a value, or `None` for a refusal.
pub(crate) struct Answers<Q, A>(Mutex<HashMap<Q, Known<A>>>);

/// A cached answer.
struct Known<A> {
    /// The answer; `None` for a refusal.
    answer: Option<A>,
    /// When it expires.
    until: Instant,
}

impl<Q: Hash + Eq + Clone, A: Clone> Answers<Q, A> {
    /// Creates an empty cache.
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Returns the answer to a question, unless it is unknown or has expired.
    pub(crate) fn get(&self, question: &Q) -> Option<Option<A>> {
        let all = self.0.lock();
        let known = all.get(question)?;
        (Instant::now() < known.until).then(|| known.answer.clone())
    }

    /// Returns whether the last answer to a question, even if expired, was a value.
    pub(crate) fn was_accepted(&self, question: &Q) -> bool {
        let all = self.0.lock();
        all.get(question)
            .is_some_and(|known| known.answer.is_some())
    }

    /// Stores an answer until a time.
    pub(crate) fn put(&self, question: Q, answer: Option<A>, until: Instant) {
        let mut all = self.0.lock();
        // Expired answers are removed only when the cache is full, so that most calls do not search it.
        if all.len() >= MOST && !all.contains_key(&question) {
            let now = Instant::now();
            all.retain(|_, known| known.is_useful(now));
        }
        // A refusal never displaces another answer: anybody can send invalid tokens, and must not be able to empty the
        // cache.
        if all.len() >= MOST && answer.is_some() {
            let refused = all.iter().find(|(_, known)| known.answer.is_none());
            let oldest = || all.iter().min_by_key(|(_, known)| known.until);
            if let Some(gone) = refused
                .or_else(oldest)
                .map(|(question, _)| question.clone())
            {
                all.remove(&gone);
            }
        }
        if all.len() < MOST {
            all.insert(question, Known { answer, until });
        }
    }

    /// Returns the number of answers.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Removes all answers.
    #[cfg(test)]
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

impl<A> Known<A> {
    fn is_useful(&self, now: Instant) -> bool {
        let more = if self.answer.is_some() {
            REMEMBERED
        } else {
            Duration::ZERO
        };
        now < self.until + more
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_are_bounded_and_refusals_go_first() {
        let answers = Answers::<usize, ()>::new();
        let in_seconds = |seconds| Instant::now() + Duration::from_secs(seconds);
        answers.put(0, None, in_seconds(30));
        for number in 1..MOST {
            answers.put(number, Some(()), in_seconds(60));
        }
        // One more refusal does not displace another, and an answer does.
        answers.put(MOST, None, in_seconds(60));
        assert_eq!(answers.get(&MOST), None);
        answers.put(MOST, Some(()), in_seconds(60));
        assert_eq!(answers.get(&MOST), Some(Some(())));
        assert_eq!(answers.get(&0), None);
        assert_eq!(answers.len(), MOST);
        // A value is remembered after it has expired, however many refusals follow.
        time::advance(Duration::from_secs(60)).await;
        assert_eq!(answers.get(&MOST), None);
        answers.put(0, None, in_seconds(10));
        assert_eq!(answers.len(), MOST);
        assert!(answers.was_accepted(&MOST) && !answers.was_accepted(&0));
        time::advance(REMEMBERED).await;
        answers.put(0, None, in_seconds(10));
        assert_eq!(answers.len(), 1);
    }
}
