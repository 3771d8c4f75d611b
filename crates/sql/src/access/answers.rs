//! A cache of answers, in which callers share pending requests.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The largest number of answers that are cached per user.
pub(super) const PER_USER: usize = 10_000;

type Flight<A, E> = Shared<BoxFuture<'static, Result<A, E>>>;

/// Caches the answers to questions about users.
///
/// The same question is never sent twice at a time: callers that ask it meanwhile share the request. No task drives a
/// request, so one that no client waits for is dropped.
#[derive(Clone)]
pub(super) struct Answers<U, Q, A, E> {
    /// How long an answer is used after its question was sent; zero disables the cache.
    pub(super) ttl: Duration,
    /// The largest number of users with cached answers.
    pub(super) users: usize,
    state: Arc<Mutex<AnswerCache<U, Q, A, E>>>,
}

struct AnswerCache<U, Q, A, E> {
    users: HashMap<U, OfUser<Q, A, E>>,
    /// Counts lookups; the number identifies a request and sorts users by last use.
    asked: u64,
    /// When stale answers of all users were removed last.
    swept_at: Instant,
}

struct OfUser<Q, A, E> {
    last_use: u64,
    entries: HashMap<Q, CachedAnswer<A, E>>,
}

struct CachedAnswer<A, E> {
    asked_at: Instant,
    /// Distinguishes it from earlier entries for the same question.
    number: u64,
    answer: Answer<A, E>,
}

enum Answer<A, E> {
    Known(A),
    Flight(WeakShared<BoxFuture<'static, Result<A, E>>>),
}

impl<U, Q, A, E> Answers<U, Q, A, E>
where
    U: Clone + Eq + Hash + Send + 'static,
    Q: Clone + Eq + Hash + Send + 'static,
    A: Clone + Send + Sync + 'static,
    E: Clone + Send + Sync + 'static,
{
    pub(super) fn new(ttl: Duration, users: usize) -> Self {
        let state = AnswerCache {
            users: HashMap::new(),
            asked: 0,
            swept_at: Instant::now(),
        };
        Self {
            ttl,
            users,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Returns the answer to a question of a user, from the cache or a request.
    ///
    /// An error is returned to all callers that wait for the answer, and is not cached.
    pub(super) async fn get(
        &self,
        user: U,
        question: Q,
        ask: impl Future<Output = Result<A, E>> + Send + 'static,
    ) -> Result<A, E> {
        // A caller that joins a request gets the answer to an earlier question, which a TTL of zero forbids.
        if self.ttl.is_zero() || self.users == 0 {
            return ask.await;
        }
        // The lock is released before the request is awaited.
        let flight = {
            let mut state = self.state.lock();
            match state.find(&user, &question, self.ttl) {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(flight)) => flight,
                None => self.begin(&mut state, user, question, ask.boxed()),
            }
        };
        flight.await
    }

    /// Counts the questions of a user that would be sent now.
    pub(super) fn unanswered(&self, user: &U, questions: &[Q]) -> usize {
        if self.ttl.is_zero() || self.users == 0 {
            return questions.len();
        }
        let (now, state) = (Instant::now(), self.state.lock());
        let Some(of_user) = state.users.get(user) else {
            return questions.len();
        };
        let is_open = |question: &&Q| of_user.find(question, now, self.ttl).is_none();
        questions.iter().filter(is_open).count()
    }

    /// Counts the cached answers and pending questions.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        let state = self.state.lock();
        state.users.values().map(|it| it.entries.len()).sum()
    }

    fn begin(
        &self,
        state: &mut AnswerCache<U, Q, A, E>,
        user: U,
        question: Q,
        ask: BoxFuture<'static, Result<A, E>>,
    ) -> Flight<A, E> {
        let now = Instant::now();
        // Before the entry is added, so that the limits hold at all times.
        state.make_place(&user, now, self.ttl, self.users);
        // `find` has just counted this lookup, so no other request has the number.
        let number = state.asked;
        let shared = Arc::clone(&self.state);
        let (of, asked) = (user.clone(), question.clone());
        let asking = async move {
            let answer = ask.await;
            shared.lock().end(&of, &asked, number, &answer);
            answer
        };
        let flight = asking.boxed().shared();
        // Weak: only waiting callers keep the request alive, so it is dropped with the last one.
        if let Some(weak) = flight.downgrade() {
            let entry = CachedAnswer {
                asked_at: now,
                number,
                answer: Answer::Flight(weak),
            };
            let of_user = state.users.entry(user).or_insert_with(OfUser::new);
            of_user.last_use = number;
            of_user.entries.insert(question, entry);
        }
        flight
    }
}

impl<U: Clone + Eq + Hash, Q: Clone + Eq + Hash, A: Clone, E: Clone> AnswerCache<U, Q, A, E> {
    /// Finds a fresh answer, or a pending request whose answer will be fresh.
    fn find(&mut self, user: &U, question: &Q, ttl: Duration) -> Option<Result<A, Flight<A, E>>> {
        self.asked += 1;
        let of_user = self.users.get_mut(user)?;
        of_user.last_use = self.asked;
        of_user.find(question, Instant::now(), ttl)
    }

    /// Evicts stale and surplus answers to make room for one more.
    fn make_place(&mut self, user: &U, now: Instant, ttl: Duration, users: usize) {
        // Once per lifetime of an answer, so that those of users who ask no more do not stay.
        if now.duration_since(self.swept_at) >= ttl {
            self.swept_at = now;
            self.users.retain(|_, it| {
                it.entries.retain(|_, entry| entry.is_fresh(now, ttl));
                !it.entries.is_empty()
            });
        }
        if let Some(of_user) = self.users.get_mut(user) {
            if of_user.entries.len() >= PER_USER {
                of_user.make_place(now, ttl);
            }
            return;
        }
        if self.users.len() < users {
            return;
        }
        self.users
            .retain(|_, it| it.entries.values().any(|entry| entry.is_fresh(now, ttl)));
        if self.users.len() >= users {
            let last_used = self
                .users
                .iter()
                .min_by_key(|(_, it)| it.last_use)
                .map(|(user, _)| user.clone());
            last_used.map(|user| self.users.remove(&user));
        }
    }

    /// Stores an answer, unless a later request for the question has replaced this one.
    fn end(&mut self, user: &U, question: &Q, number: u64, answer: &Result<A, E>) {
        let Some(of_user) = self.users.get_mut(user) else {
            return;
        };
        let Some(entry) = of_user.entries.get_mut(question) else {
            return;
        };
        // The entry expired while this request was pending, and a later one has taken its place.
        if entry.number != number {
            return;
        }
        match answer {
            Ok(answer) => entry.answer = Answer::Known(answer.clone()),
            Err(_) => {
                of_user.entries.remove(question);
            }
        }
    }
}

impl<Q: Eq + Hash, A: Clone, E: Clone> OfUser<Q, A, E> {
    fn new() -> Self {
        Self {
            last_use: 0,
            entries: HashMap::new(),
        }
    }

    /// Finds a fresh answer, or a pending request whose answer will be fresh.
    fn find(&self, question: &Q, now: Instant, ttl: Duration) -> Option<Result<A, Flight<A, E>>> {
        let entry = self.entries.get(question)?;
        if !entry.is_fresh(now, ttl) {
            return None;
        }
        match &entry.answer {
            Answer::Known(answer) => Some(Ok(answer.clone())),
            // `None` if all its callers were cancelled: then this one asks again.
            Answer::Flight(weak) => weak.upgrade().map(Err),
        }
    }

    /// Evicts stale answers, and the older half if all are fresh.
    fn make_place(&mut self, now: Instant, ttl: Duration) {
        self.entries.retain(|_, entry| entry.is_fresh(now, ttl));
        // Half of them, so that a user with too many is not searched at each question.
        if self.entries.len() >= PER_USER {
            let mut numbers: Vec<u64> = self.entries.values().map(|entry| entry.number).collect();
            let (_, median, _) = numbers.select_nth_unstable(PER_USER / 2);
            let first = *median;
            self.entries.retain(|_, entry| entry.number >= first);
        }
    }
}

impl<A, E> CachedAnswer<A, E> {
    fn is_fresh(&self, now: Instant, ttl: Duration) -> bool {
        now.duration_since(self.asked_at) < ttl
    }
}
