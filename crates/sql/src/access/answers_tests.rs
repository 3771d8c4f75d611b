//! What is remembered, for how long, and who waits for whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{join_all, pending};
use tokio::time::{advance, sleep};

use super::answers::{Answers, PER_USER};

const TTL: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

/// A cache of answers, each of which is the number of its request.
struct Bench {
    answers: Answers<&'static str, usize, usize, &'static str>,
    asked: Arc<AtomicUsize>,
}

impl Bench {
    fn new(ttl: Duration, users: usize) -> Self {
        Self {
            answers: Answers::new(ttl, users),
            asked: Arc::default(),
        }
    }

    /// Asks a question whose answer takes so long.
    async fn ask(&self, user: &'static str, question: usize, takes: Duration) -> usize {
        let asked = Arc::clone(&self.asked);
        let ask = async move {
            let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
            sleep(takes).await;
            Ok(number)
        };
        let answer = self.answers.get(user, question, ask).await;
        answer.expect("the question has an answer")
    }

    async fn at_once(&self, user: &'static str) -> usize {
        self.ask(user, 0, Duration::ZERO).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_good_for_its_time_since_it_was_asked_for() {
    let bench = Bench::new(TTL, 10);
    assert_eq!(bench.ask("jane", 0, 10 * SECOND).await, 1);
    advance(20 * SECOND - Duration::from_millis(2)).await;
    assert_eq!(bench.at_once("jane").await, 1);
    advance(Duration::from_millis(2)).await;
    assert_eq!(
        bench.at_once("jane").await,
        2,
        "30 seconds after the question"
    );
}

#[tokio::test(start_paused = true)]
async fn users_and_questions_have_answers_of_their_own() {
    let bench = Bench::new(TTL, 10);
    assert_eq!(bench.ask("jane", 0, SECOND).await, 1);
    assert_eq!(bench.ask("jane", 1, SECOND).await, 2);
    assert_eq!(bench.ask("joe", 0, SECOND).await, 3);
    assert_eq!(bench.ask("jane", 0, SECOND).await, 1);
}

#[tokio::test(start_paused = true)]
async fn questions_at_a_time_are_asked_once() {
    let bench = Bench::new(TTL, 10);
    let answers = join_all((0..10).map(|_| bench.ask("jane", 0, SECOND))).await;
    assert_eq!(answers, [1; 10]);
}

#[tokio::test(start_paused = true)]
async fn without_a_time_or_users_each_asks_for_itself() {
    for bench in [Bench::new(Duration::ZERO, 10), Bench::new(TTL, 0)] {
        let mut answers = join_all((0..3).map(|_| bench.ask("jane", 0, SECOND))).await;
        answers.push(bench.at_once("jane").await);
        assert_eq!(answers, [1, 2, 3, 4]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_reaches_all_waiting_calls_and_is_not_cached() {
    let bench = Bench::new(TTL, 10);
    let asked = Arc::clone(&bench.asked);
    let fail = || {
        let asked = Arc::clone(&asked);
        let ask = async move {
            asked.fetch_add(1, Ordering::Relaxed);
            sleep(SECOND).await;
            Err("no")
        };
        bench.answers.get("jane", 0, ask)
    };
    assert_eq!(join_all([fail(), fail(), fail()]).await, [Err("no"); 3]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(bench.at_once("jane").await, 2);
}

#[tokio::test(start_paused = true)]
async fn an_error_does_not_reach_later_calls() {
    let bench = Bench::new(TTL, 10);
    let fail = || {
        bench
            .answers
            .get("jane", 0, sleep(SECOND).map(|()| Err("no")))
    };
    let mut late = Box::pin(fail());
    assert!(late.as_mut().now_or_never().is_none());
    assert_eq!(fail().await, Err("no"));
    // Another still holds the failed question.
    assert_eq!(bench.at_once("jane").await, 1);
    assert_eq!(late.await, Err("no"));
    assert_eq!(bench.at_once("jane").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_does_not_take_the_answer_from_others() {
    let bench = Bench::new(TTL, 10);
    let mut first = Box::pin(bench.ask("jane", 0, SECOND));
    assert!(first.as_mut().now_or_never().is_none());
    let mut second = Box::pin(bench.ask("jane", 0, SECOND));
    assert!(second.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(second.await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_without_waiters_is_dropped_and_asked_again() {
    let bench = Bench::new(TTL, 10);
    let witness = Arc::new(());
    let held = Arc::clone(&witness);
    let ask = async move {
        pending::<()>().await;
        drop(held);
        Ok(0)
    };
    let mut first = Box::pin(bench.answers.get("jane", 0, ask));
    assert!(first.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(Arc::strong_count(&witness), 1, "what was asked is gone");
    assert_eq!(bench.at_once("jane").await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_too_old_is_neither_joined_nor_remembered() {
    let bench = Bench::new(TTL, 10);
    let mut slow = Box::pin(bench.ask("jane", 0, 2 * TTL));
    assert!(slow.as_mut().now_or_never().is_none());
    advance(TTL).await;
    assert_eq!(bench.ask("jane", 0, SECOND).await, 2);
    assert_eq!(slow.await, 1, "who waited for it gets its answer");
    // The later answer was asked for 30 seconds ago, the earlier one 60.
    assert_eq!(bench.at_once("jane").await, 3);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_does_not_replace_a_newer_one() {
    let bench = Bench::new(TTL, 10);
    let mut slow = Box::pin(bench.ask("jane", 0, TTL + 5 * SECOND));
    assert!(slow.as_mut().now_or_never().is_none());
    advance(TTL).await;
    assert_eq!(bench.at_once("jane").await, 2);
    assert_eq!(slow.await, 1);
    assert_eq!(bench.at_once("jane").await, 2);
}

#[tokio::test(start_paused = true)]
async fn the_last_used_users_stay_cached() {
    let bench = Bench::new(TTL, 2);
    assert_eq!(bench.at_once("jane").await, 1);
    assert_eq!(bench.at_once("joe").await, 2);
    assert_eq!(bench.at_once("jane").await, 1);
    assert_eq!(bench.at_once("jim").await, 3);
    assert_eq!(bench.at_once("jane").await, 1);
    assert_eq!(bench.at_once("joe").await, 4, "jim had the place of joe");
}

#[tokio::test(start_paused = true)]
async fn one_user_has_a_bounded_number_of_answers() {
    let bench = Bench::new(TTL, 2);
    for question in 0..PER_USER + 1 {
        bench.ask("jane", question, Duration::ZERO).await;
    }
    assert_eq!(bench.answers.remembered(), PER_USER / 2 + 1);
    let last = bench.ask("jane", PER_USER, Duration::ZERO).await;
    assert_eq!(last, PER_USER + 1);
    let first = bench.ask("jane", 0, Duration::ZERO).await;
    assert_eq!(first, PER_USER + 2);
}
