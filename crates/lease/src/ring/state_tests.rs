//! Tests of the state machine of a member, one step at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease as Object;
use tokio::time::Instant;

use super::config::Sharding;
use super::record::{labelled, renewed};
use super::share::Share;
use super::state::{MemberState, Observation, Step, Unrenewed};
use crate::config::Lease;
use crate::record::Record;

const SECOND: Duration = Duration::from_secs(1);

/// Returns the lease of a member; `None` for one without a holder.
pub(super) fn lease(name: &str, holder: Option<&str>, renewal: i64, acks: &[&str]) -> Object {
    let at = Timestamp::from_second(renewal).expect("it is in range");
    let record = Record::new(&holder.unwrap_or_default().into(), 15, at);
    let new = labelled(record.create(name, "shops"), "shop");
    let acks: BTreeSet<Arc<str>> = acks.iter().map(|name| Arc::from(*name)).collect();
    renewed(&record, &new, &acks)
}

/// Returns the lease of a member that is alive.
fn held(name: &str, renewal: i64, acks: &[&str]) -> Object {
    lease(name, Some(name), renewal, acks)
}

/// A member named `me`, with client-go's times and a drain timeout of 8 s.
struct Stage {
    state: MemberState,
    now: Instant,
    began: Instant,
}

impl Stage {
    /// A process whose lease was created just now.
    fn begun() -> Self {
        let (config, now) = (Sharding::new(Lease::new("shop")), Instant::now());
        let config = config.drain_timeout(8 * SECOND);
        let mut state = MemberState::new("me".into(), &config, now);
        state.begin(now, now);
        Self {
            state,
            now,
            began: now,
        }
    }

    /// A process that is the only member.
    fn joined() -> Self {
        let mut stage = Self::begun();
        stage.list(vec![held("me", 0, &[])]);
        assert_eq!(stage.steps(true), [count(&[]), join(&[])]);
        assert!(stage.state.has_joined());
        stage
    }

    fn advance(&mut self, time: Duration) {
        self.now += time;
    }

    fn list(&mut self, leases: Vec<Object>) {
        self.state.observed(Observation::All(leases), self.now);
    }

    fn see(&mut self, lease: Object) {
        let seen = Observation::Seen(Box::new(lease));
        self.state.observed(seen, self.now);
    }

    fn delete(&mut self, name: &str) {
        let deleted = Observation::Deleted(name.to_owned());
        self.state.observed(deleted, self.now);
    }

    fn next(&mut self, is_drained: bool) -> Step {
        self.state.next(self.now, is_drained)
    }

    /// Returns the steps until the next wait. Renewals succeed.
    fn steps(&mut self, is_drained: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            match self.next(is_drained) {
                Step::Wait { .. } => return steps,
                step => {
                    if step == Step::Renew {
                        self.state.renewed(self.now, self.now);
                    }
                    steps.push(step);
                }
            }
        }
    }

    /// Returns how long the member waits, and whether the end of the calls ends the wait.
    fn wait(&mut self, is_drained: bool) -> (Duration, bool) {
        match self.next(is_drained) {
            Step::Wait { until, for_calls } => (until - self.now, for_calls),
            step => panic!("it does not wait: {step:?}"),
        }
    }

    /// Lets time pass; renewals succeed. Returns all other steps.
    fn pass(&mut self, time: Duration, is_drained: bool) -> Vec<Step> {
        let end = self.now + time;
        let mut steps = Vec::new();
        loop {
            steps.extend(self.steps(is_drained));
            let (wait, _) = self.wait(is_drained);
            if self.now + wait > end {
                self.now = end;
                steps.retain(|step| *step != Step::Renew);
                return steps;
            }
            assert!(!wait.is_zero(), "a wait ends later");
            self.advance(wait);
        }
    }

    fn acked(&self) -> Vec<&str> {
        self.state.acked().iter().map(|name| &**name).collect()
    }
}

fn count(others: &[&str]) -> Step {
    Step::Count(Share::of("me", others.iter().copied()))
}

fn join(others: &[&str]) -> Step {
    Step::Join(Share::of("me", others.iter().copied()))
}

#[test]
fn first_member_joins_when_the_ring_is_listed() {
    let mut stage = Stage::begun();
    assert_eq!(stage.wait(true), (2 * SECOND, false), "nothing is known");
    stage.see(held("me", 0, &[]));
    assert_eq!(stage.steps(true), [], "others may exist");
    stage.list(vec![held("me", 0, &[])]);
    assert_eq!(stage.steps(true), [count(&[]), join(&[])]);
    stage.list(vec![held("me", 0, &[])]);
    assert_eq!(stage.steps(true), [], "once");
}

#[test]
fn member_joins_when_all_others_have_acknowledged_it() {
    let mut stage = Stage::begun();
    stage.list(vec![
        held("me", 0, &[]),
        held("a", 0, &[]),
        held("b", 0, &[]),
    ]);
    // It has no calls, so it acknowledges the others at once.
    let counted = count(&["a", "b"]);
    assert_eq!(stage.steps(true), [counted, Step::DropLost, Step::Renew]);
    assert_eq!(stage.acked(), ["a", "b"]);
    stage.see(held("a", 1, &["me"]));
    assert_eq!(stage.steps(true), []);
    stage.see(held("b", 1, &["other"]));
    assert_eq!(stage.steps(true), []);
    assert!(!stage.state.has_joined());
    stage.see(held("b", 1, &["me", "other"]));
    assert_eq!(stage.steps(true), [join(&["a", "b"])]);
    assert!(stage.state.has_joined());
}

#[test]
fn member_joins_when_one_that_has_not_acknowledged_it_leaves() {
    let mut stage = Stage::begun();
    stage.list(vec![held("me", 0, &[]), held("a", 0, &[])]);
    stage.steps(true);
    stage.see(lease("a", None, 1, &[]));
    assert_eq!(stage.steps(true), [count(&[]), join(&[])]);
}

#[test]
fn observations_from_before_the_lease_are_forgotten() {
    let (config, now) = (Sharding::new(Lease::new("shop")), Instant::now());
    let mut state = MemberState::new("me".into(), &config, now);
    assert_eq!(state.count(), None, "nothing is listed");
    let all = Observation::All(vec![held("a", 0, &["me"])]);
    state.observed(all.clone(), now);
    assert_eq!(state.count(), Some(count(&["a"])));
    assert_eq!(state.count(), None);
    state.begin(now, now);
    assert!(matches!(state.next(now, true), Step::Wait { .. }));
    state.observed(Observation::All(Vec::new()), now);
    assert_eq!(state.next(now, true), count(&[]));
    assert_eq!(state.next(now, true), join(&[]));
    state.observed(all, now);
    assert_eq!(state.next(now, true), count(&["a"]));
}

#[test]
fn new_member_is_acknowledged_when_calls_have_ended() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &[]));
    assert_eq!(stage.steps(false), [count(&["a"])]);
    assert_eq!(stage.wait(false), (2 * SECOND, true));
    assert_eq!(stage.pass(7 * SECOND, false), []);
    assert!(stage.acked().is_empty());
    assert_eq!(stage.next(true), Step::DropLost);
    assert_eq!(stage.acked(), ["a"]);
    assert_eq!(stage.next(true), Step::Renew, "at once");
    stage.state.renewed(stage.now, stage.now);
    assert_eq!(stage.pass(7 * SECOND, true), [], "it is done");
}

#[test]
fn calls_are_dropped_at_the_drain_timeout_and_their_writes_awaited() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &[]));
    assert_eq!(stage.pass(8 * SECOND - SECOND / 10, false), [count(&["a"])]);
    // Another member that joins gets no further time.
    stage.see(held("b", 0, &[]));
    let counted = count(&["a", "b"]);
    assert_eq!(stage.pass(SECOND / 10, false), [counted, Step::Revoke]);
    assert!(!stage.wait(true).1, "their writes may arrive");
    assert_eq!(stage.pass(5 * SECOND - SECOND / 10, true), []);
    assert!(stage.acked().is_empty());
    assert_eq!(stage.pass(SECOND / 10, true), [Step::DropLost]);
    assert_eq!(stage.acked(), ["a", "b"]);
}

#[test]
fn call_that_is_not_dropped_delays_the_hand_over() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &[]));
    // Again after each margin, since another change of the share lets calls go on.
    let steps = [count(&["a"]), Step::Revoke, Step::Revoke];
    assert_eq!(stage.pass(14 * SECOND, false), steps);
    stage.see(held("a", 1, &[]));
    assert_eq!(stage.pass(4 * SECOND, false), [Step::Revoke]);
    assert!(stage.acked().is_empty());
    assert_eq!(stage.pass(5 * SECOND, true), [Step::DropLost]);
    assert_eq!(stage.acked(), ["a"]);
}

#[test]
fn drain_timeout_of_zero_drops_calls_at_once() {
    let now = Instant::now();
    let config = Sharding::new(Lease::new("shop")).drain_timeout(Duration::ZERO);
    let mut state = MemberState::new("me".into(), &config, now);
    state.begin(now, now);
    state.observed(Observation::All(vec![held("me", 0, &[])]), now);
    assert_eq!(
        [state.next(now, true), state.next(now, true)],
        [count(&[]), join(&[])]
    );
    let seen = Observation::Seen(Box::new(held("a", 0, &[])));
    state.observed(seen, now);
    assert_eq!(state.next(now, false), count(&["a"]));
    assert_eq!(state.next(now, false), Step::Revoke);
}

#[test]
fn no_member_is_acknowledged_while_a_lease_is_missing() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &["me"]));
    stage.steps(true);
    stage.delete("a");
    stage.see(held("b", 0, &[]));
    assert_eq!(stage.steps(true), [count(&["a", "b"])]);
    assert_eq!(stage.acked(), ["a"]);
    assert_eq!(stage.pass(14 * SECOND, true), []);
    stage.see(held("b", 1, &[]));
    // It counts for its duration, and is not taken away: there is no object to update.
    let forgotten = [count(&["b"]), Step::DropLost];
    assert_eq!(stage.pass(SECOND, true), forgotten);
    assert_eq!(stage.acked(), ["b"]);
}

#[test]
fn lease_that_is_back_is_not_missing() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &["me"]));
    stage.steps(true);
    stage.list(vec![held("me", 0, &[])]);
    assert_eq!(stage.pass(10 * SECOND, true), []);
    stage.see(held("a", 1, &["me"]));
    assert_eq!(stage.pass(10 * SECOND, true), []);
}

#[test]
fn member_that_left_and_comes_back_is_acknowledged_again() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &[]));
    stage.steps(true);
    assert_eq!(stage.acked(), ["a"]);
    stage.see(lease("a", None, 1, &[]));
    assert_eq!(stage.steps(true), [count(&[])]);
    assert!(stage.acked().is_empty());
    stage.see(held("a", 2, &[]));
    assert_eq!(stage.steps(false), [count(&["a"])]);
    assert!(stage.acked().is_empty());
}

#[test]
fn hand_over_ends_when_the_new_member_leaves() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &[]));
    assert_eq!(stage.pass(7 * SECOND, false), [count(&["a"])]);
    stage.see(lease("a", None, 1, &[]));
    assert_eq!(stage.pass(2 * SECOND, false), [count(&[])]);
    // The next one has the full drain timeout.
    stage.see(held("b", 1, &[]));
    assert_eq!(stage.pass(7 * SECOND, false), [count(&["b"])]);
}

#[test]
fn renewal_is_tried_again_until_the_deadline() {
    let mut stage = Stage::joined();
    let due = stage.began + 2 * SECOND;
    assert_eq!(stage.wait(true), (2 * SECOND, false));
    stage.advance(2 * SECOND);
    for _ in 0..4 {
        assert_eq!(stage.next(true), Step::Renew);
        stage.state.not_renewed(stage.now);
        assert_eq!(stage.wait(true), (2 * SECOND, false));
        stage.advance(2 * SECOND);
    }
    let lost = Unrenewed {
        due,
        began: due,
        deadline: stage.began + 10 * SECOND,
    };
    assert_eq!(stage.next(true), Step::Lost(lost));
}

#[test]
fn renewal_counts_from_its_request() {
    let mut stage = Stage::joined();
    stage.advance(3 * SECOND);
    assert_eq!(stage.next(true), Step::Renew);
    let sent = stage.now;
    stage.advance(4 * SECOND);
    stage.state.renewed(sent, stage.now);
    assert_eq!(stage.state.sent(), sent);
    assert_eq!(stage.state.deadline(), sent + 10 * SECOND);
    assert_eq!(stage.wait(true), (2 * SECOND, false));
    stage.advance(2 * SECOND);
    assert_eq!(stage.next(true), Step::Renew);
    // The wait for an answer ends at the deadline too.
    stage.advance(3 * SECOND);
    stage.state.not_renewed(stage.now);
    assert_eq!(stage.wait(true), (SECOND, false));
}

#[test]
fn member_that_was_suspended_beyond_its_deadline_does_nothing_more() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &[]));
    stage.advance(10 * SECOND);
    let due = stage.began + 2 * SECOND;
    let lost = Unrenewed {
        due,
        began: stage.now,
        deadline: stage.now,
    };
    assert_eq!(stage.next(true), Step::Lost(lost), "no acknowledgement");
    assert!(stage.acked().is_empty());

    let mut stage = Stage::begun();
    stage.list(vec![held("me", 0, &[])]);
    stage.advance(10 * SECOND);
    assert!(matches!(stage.next(true), Step::Lost(_)), "no join");
    assert!(!stage.state.has_joined());
}

#[test]
fn late_answer_to_a_renewal_ends_the_membership() {
    let mut stage = Stage::joined();
    stage.advance(2 * SECOND);
    assert_eq!(stage.next(true), Step::Renew);
    let sent = stage.now;
    stage.advance(10 * SECOND);
    stage.state.renewed(sent, stage.now);
    assert!(matches!(stage.next(true), Step::Lost(_)));
}

#[test]
fn expired_lease_is_taken_away() {
    let mut stage = Stage::joined();
    stage.see(held("a", 0, &["me"]));
    let handed_over = [count(&["a"]), Step::DropLost];
    assert_eq!(stage.pass(14 * SECOND, true), handed_over);
    // An acknowledgement is no renewal.
    stage.see(held("a", 0, &["me", "b"]));
    stage.advance(2 * SECOND);
    assert_eq!(stage.next(true), Step::Renew, "its own comes first");
    stage.state.renewed(stage.now, stage.now);
    let expired = Box::new(held("a", 0, &["me", "b"]));
    assert_eq!(stage.next(true), Step::TakeAway(expired.clone()));
    stage.state.not_taken(stage.now);
    assert_eq!(stage.wait(true), (2 * SECOND, false), "it failed just now");
    stage.advance(2 * SECOND);
    assert_eq!(stage.next(true), Step::Renew);
    stage.state.renewed(stage.now, stage.now);
    assert_eq!(stage.next(true), Step::TakeAway(expired));
    stage.see(lease("a", None, 1, &[]));
    assert_eq!(stage.steps(true), [count(&[])]);
}

#[test]
fn released_lease_is_deleted_after_its_duration() {
    let mut stage = Stage::joined();
    let released = lease("a", None, 1, &[]);
    stage.see(released.clone());
    stage.see(lease("gone", None, 1, &[]));
    stage.delete("gone");
    assert_eq!(stage.pass(15 * SECOND - SECOND / 100, true), []);
    // A later list does not prolong the wait.
    stage.list(vec![released.clone()]);
    let cleared = [Step::ClearAway(Box::new(released))];
    assert_eq!(stage.pass(20 * SECOND, true), cleared, "once");
}
