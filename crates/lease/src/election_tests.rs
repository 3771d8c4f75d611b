//! client-go's tables: acquisition, renewal and release, and their requests.

use std::time::Duration;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Drives an election by hand; the two clocks run alike.
pub(super) struct Stage {
    pub(super) election: Election,
    pub(super) at: Moment,
    /// The requests that were made.
    calls: Vec<&'static str>,
    version: u32,
}

impl Stage {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let wall = Timestamp::UNIX_EPOCH;
        Self {
            election: Election::new("me".into(), 15),
            at: Moment { now, wall },
            calls: Vec::new(),
            version: 1,
        }
    }

    /// Lets time pass, in which the process looks at the lease every third of its duration.
    pub(super) fn advance(&mut self, by: Duration) {
        let mut left = by;
        while left > 5 * SECOND {
            self.suspend(5 * SECOND);
            left -= 5 * SECOND;
            if let Some(observed) = &mut self.election.observed {
                observed.look(self.at.now);
            }
        }
        self.suspend(left);
    }

    /// Lets time pass while the process does nothing.
    pub(super) fn suspend(&mut self, by: Duration) {
        self.at.now += by;
        self.at.wall += jiff::SignedDuration::try_from(by).unwrap();
    }

    /// Makes a lease as the server has it.
    pub(super) fn lease(&mut self, holder: &str, transitions: i32) -> Box<Object> {
        let record = Record {
            transitions,
            ..Record::new(&holder.into(), 15, self.at.wall)
        };
        self.stored(record.create("shop", "default"))
    }

    fn stored(&mut self, mut object: Object) -> Box<Object> {
        self.version += 1;
        object.metadata.resource_version = Some(self.version.to_string());
        Box::new(object)
    }

    /// Answers what was requested as a server does that takes every write.
    fn accept(&mut self, request: &Request, found: Option<&Object>) -> Answer {
        match request {
            Request::Get => found.map_or(Answer::Absent, |found| {
                Answer::Object(Box::new(found.clone()))
            }),
            Request::Create(record) => {
                Answer::Object(self.stored(record.create("shop", "default")))
            }
            Request::Update(object) => Answer::Object(self.stored((**object).clone())),
        }
    }

    fn note(&mut self, request: &Request) {
        self.calls.push(match request {
            Request::Get => "get",
            Request::Create(_) => "create",
            Request::Update(_) => "update",
        });
    }

    /// Tries once.
    ///
    /// `found` is what a read finds, `refused` the writes that meet a conflict, by their place.
    pub(super) fn attempt(&mut self, found: Option<&Object>, refused: &[usize]) -> Next {
        let mut request = self.election.attempt(self.at);
        let mut writes = 0;
        loop {
            self.note(&request);
            let mut answer = self.accept(&request, found);
            if request != Request::Get {
                if refused.contains(&writes) {
                    answer = Answer::Conflict;
                }
                writes += 1;
            }
            match self.election.answered(answer, self.at) {
                Next::Send(next) => request = next,
                next => return next,
            }
        }
    }

    fn record(&self) -> Record {
        let observed = self.election.observed.as_ref();
        observed.expect("a lease was seen").record.clone()
    }
}

#[test]
fn a_lease_is_taken_where_none_is_and_then_renewed_without_a_read() {
    let mut stage = Stage::new();
    assert_eq!(stage.attempt(None, &[]), Next::Held);
    stage.advance(2 * SECOND);
    assert_eq!(stage.attempt(None, &[]), Next::Held);
    stage.advance(2 * SECOND);
    assert_eq!(stage.attempt(None, &[]), Next::Held);
    assert_eq!(stage.calls, ["get", "create", "update", "update"]);
    let record = stage.record();
    assert_eq!(
        record.acquired,
        Some(Timestamp::UNIX_EPOCH),
        "renewals keep it"
    );
    assert_eq!(record.renewed, Some(stage.at.wall));
    assert_eq!(record.transitions, 0);
}

#[test]
fn a_conflict_of_a_renewal_leads_to_a_read_and_another_update() {
    let mut stage = Stage::new();
    stage.attempt(None, &[]);
    let mine = stage.lease("me", 0);
    assert_eq!(stage.attempt(Some(&mine), &[0]), Next::Held);
    assert_eq!(stage.calls, ["get", "create", "update", "get", "update"]);
    assert_eq!(stage.election.slow_renewals(), 1);
}

#[test]
fn a_lease_without_a_holder_is_acquired_immediately() {
    for transitions in [0, 7] {
        let mut stage = Stage::new();
        let free = stage.lease("", transitions);
        assert_eq!(stage.attempt(Some(&free), &[]), Next::Held);
        assert_eq!(stage.calls, ["get", "update"]);
        assert_eq!(stage.record().transitions, transitions + 1);
    }
}

#[test]
fn a_lease_of_another_is_left_alone_until_it_was_not_seen_to_change_for_its_duration() {
    let mut stage = Stage::new();
    let theirs = stage.lease("other", 3);
    // However old its own times are: they are those of another clock.
    stage.advance(3600 * SECOND);
    let held = Next::HeldBy("other".into());
    assert_eq!(stage.attempt(Some(&theirs), &[]), held);
    stage.advance(15 * SECOND - Duration::from_nanos(1));
    assert_eq!(stage.attempt(Some(&theirs), &[]), held);
    stage.advance(Duration::from_nanos(1));
    assert_eq!(stage.attempt(Some(&theirs), &[]), Next::Held);
    assert_eq!(stage.record().transitions, 4);
    assert_eq!(stage.record().acquired, Some(stage.at.wall));
}

#[test]
fn a_renewal_by_another_begins_the_wait_again_and_a_new_label_does_not() {
    let mut stage = Stage::new();
    let theirs = stage.lease("other", 0);
    let held = Next::HeldBy("other".into());
    assert_eq!(stage.attempt(Some(&theirs), &[]), held);
    stage.advance(14 * SECOND);
    let mut labelled = theirs;
    labelled.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
    assert_eq!(stage.attempt(Some(&labelled), &[]), held);
    stage.advance(SECOND);
    let renewed = stage.lease("other", 0);
    assert_eq!(stage.attempt(Some(&renewed), &[]), held);
    stage.advance(14 * SECOND);
    assert_eq!(stage.attempt(Some(&renewed), &[]), held);
    stage.advance(SECOND);
    assert_eq!(stage.attempt(Some(&renewed), &[]), Next::Held);
}

#[test]
fn of_two_that_take_an_expired_lease_one_fails() {
    let mut stage = Stage::new();
    let theirs = stage.lease("other", 0);
    stage.attempt(Some(&theirs), &[]);
    stage.advance(15 * SECOND);
    assert_eq!(stage.attempt(Some(&theirs), &[0]), Next::Failed);
    assert!(!stage.election.holds());
}

#[test]
fn the_loser_of_a_race_for_a_free_lease_knows_the_winner_without_another_try() {
    for found in [None, Some("")] {
        let mut stage = Stage::new();
        let free = found.map(|holder| stage.lease(holder, 3));
        let get = stage.election.attempt(stage.at);
        let read = stage.accept(&get, free.as_deref());
        stage.election.answered(read, stage.at);
        let read = stage.election.answered(Answer::Conflict, stage.at);
        assert_eq!(read, Next::Send(Request::Get));
        let theirs = stage.lease("other", 4);
        let known = stage.election.answered(Answer::Object(theirs), stage.at);
        assert_eq!(known, Next::HeldBy("other".into()));
    }
}

#[test]
fn a_lease_that_was_taken_over_is_not_renewed() {
    let mut stage = Stage::new();
    stage.attempt(None, &[]);
    let theirs = stage.lease("other", 1);
    assert_eq!(
        stage.attempt(Some(&theirs), &[0]),
        Next::HeldBy("other".into())
    );
    assert!(!stage.election.holds());
    assert_eq!(
        stage.election.release(),
        None,
        "there is nothing to give up"
    );
}

#[test]
fn a_renewal_that_was_applied_but_never_answered_is_found_by_the_read() {
    let mut stage = Stage::new();
    stage.attempt(None, &[]);
    stage.advance(2 * SECOND);
    let Request::Update(sent) = stage.election.attempt(stage.at) else {
        panic!("a renewal without a read");
    };
    let applied = stage.stored(*sent);
    let read = stage.election.answered(Answer::Failed, stage.at);
    assert_eq!(read, Next::Send(Request::Get));
    let update = stage
        .election
        .answered(Answer::Object(applied.clone()), stage.at);
    let Next::Send(Request::Update(update)) = update else {
        panic!("{update:?}");
    };
    assert_eq!(
        update.metadata.resource_version,
        applied.metadata.resource_version
    );
}

#[test]
fn a_lease_that_is_deleted_is_created_again() {
    let mut stage = Stage::new();
    stage.attempt(None, &[]);
    assert_eq!(stage.attempt(None, &[0]), Next::Held);
    assert_eq!(stage.calls, ["get", "create", "update", "get", "create"]);
    assert_eq!(stage.record().transitions, 0, "its term goes on");
}

#[test]
fn a_lease_of_another_that_is_deleted_counts_as_held_for_its_duration() {
    let mut stage = Stage::new();
    let theirs = stage.lease("other", 6);
    assert_eq!(
        stage.attempt(Some(&theirs), &[]),
        Next::HeldBy("other".into())
    );
    stage.advance(10 * SECOND);
    assert_eq!(stage.attempt(None, &[]), Next::HeldBy("other".into()));
    stage.advance(14 * SECOND);
    assert_eq!(stage.attempt(None, &[]), Next::HeldBy("other".into()));
    stage.advance(SECOND);
    assert_eq!(stage.attempt(None, &[]), Next::Held);
    assert_eq!(stage.record().transitions, 7, "no two terms have the same");
}

#[test]
fn a_lease_that_was_released_and_is_deleted_is_created_immediately() {
    let mut stage = Stage::new();
    let free = stage.lease("", 3);
    stage.election.observe(*free, stage.at.now);
    assert_eq!(stage.attempt(None, &[]), Next::Held);
    assert_eq!(stage.record().transitions, 4);
}

#[test]
fn what_others_wrote_into_the_lease_stays() {
    let mut stage = Stage::new();
    let mut free = stage.lease("", 0);
    free.metadata.annotations = Some([("note".to_owned(), "kept".to_owned())].into());
    free.spec.as_mut().expect("it has one").strategy = Some("OldestEmulationVersion".to_owned());
    assert_eq!(stage.attempt(Some(&free), &[]), Next::Held);
    let held = &stage.election.observed.as_ref().expect("it is held").object;
    let spec = held.spec.as_ref().expect("it has one");
    assert_eq!(spec.strategy.as_deref(), Some("OldestEmulationVersion"));
    assert!(held.metadata.annotations.is_some());
}

#[test]
fn a_release_reads_first_keeps_the_transitions_and_expires_after_a_second() {
    let mut stage = Stage::new();
    let free = stage.lease("", 4);
    stage.attempt(Some(&free), &[]);
    stage.calls.clear();
    let mine = stage.lease("me", 5);
    let mut request = stage.election.release().expect("it is held");
    let next = loop {
        stage.note(&request);
        // The first update meets a conflict: a renewal that was on its way.
        let is_first = stage.calls.ends_with(&["update"]) && stage.calls.len() == 2;
        let answer = if is_first {
            Answer::Conflict
        } else {
            stage.accept(&request, Some(&mine))
        };
        match stage.election.answered(answer, stage.at) {
            Next::Send(next) => request = next,
            next => break next,
        }
    };
    assert_eq!(next, Next::Released);
    assert_eq!(stage.calls, ["get", "update", "get", "update"]);
    let record = stage.record();
    assert_eq!(
        (&*record.holder, record.seconds, record.transitions),
        ("", 1, 5)
    );
}

#[test]
fn a_release_of_what_another_holds_by_now_changes_nothing() {
    let mut stage = Stage::new();
    stage.attempt(None, &[]);
    let theirs = stage.lease("other", 1);
    assert_eq!(stage.election.release(), Some(Request::Get));
    let next = stage.election.answered(Answer::Object(theirs), stage.at);
    assert_eq!(next, Next::Released);
}

#[test]
fn an_acquisition_that_was_never_answered_is_given_up_as_well() {
    let mut stage = Stage::new();
    let request = stage.election.attempt(stage.at);
    assert_eq!(request, Request::Get);
    let create = stage.election.answered(Answer::Absent, stage.at);
    assert!(matches!(create, Next::Send(Request::Create(_))));
    assert_eq!(stage.election.release(), Some(Request::Get));
}

/// The server may have applied a write whose answer is lost, by a time limit or an error on the way.
#[test]
fn an_unanswered_acquisition_is_released_until_a_read_shows_the_holder() {
    for found in [None, Some("")] {
        let mut stage = Stage::new();
        let free = found.map(|holder| stage.lease(holder, 3));
        let get = stage.election.attempt(stage.at);
        let read = stage.accept(&get, free.as_deref());
        let write = stage.election.answered(read, stage.at);
        assert!(matches!(
            write,
            Next::Send(Request::Create(_) | Request::Update(_))
        ));
        let failed = stage.election.answered(Answer::Failed, stage.at);
        assert_eq!(failed, Next::Failed);

        assert_eq!(stage.election.release(), Some(Request::Get), "{found:?}");
        let failed = stage.election.answered(Answer::Failed, stage.at);
        assert_eq!(failed, Next::Failed);
        assert_eq!(
            stage.election.release(),
            Some(Request::Get),
            "no read has shown it"
        );
        let mine = stage.lease("me", 4);
        let update = stage.election.answered(Answer::Object(mine), stage.at);
        assert!(
            matches!(update, Next::Send(Request::Update(_))),
            "{update:?}"
        );
    }
}

#[test]
fn a_try_after_an_acquisition_without_an_answer_keeps_in_mind_that_it_may_hold_the_lease() {
    let mut stage = Stage::new();
    stage.election.attempt(stage.at);
    let create = stage.election.answered(Answer::Absent, stage.at);
    assert!(matches!(create, Next::Send(Request::Create(_))));
    // The next try begins, and its read has no answer either.
    assert_eq!(stage.election.attempt(stage.at), Request::Get);
    assert_eq!(stage.election.release(), Some(Request::Get));
}

#[test]
fn a_read_that_shows_another_holder_leaves_nothing_to_release() {
    let mut stage = Stage::new();
    stage.election.attempt(stage.at);
    stage.election.answered(Answer::Absent, stage.at);
    stage.election.answered(Answer::Failed, stage.at);
    let theirs = stage.lease("other", 0);
    let held = stage.attempt(Some(&theirs), &[]);
    assert_eq!(held, Next::HeldBy("other".into()));
    assert_eq!(stage.election.release(), None);
}

#[test]
fn one_that_was_suspended_does_not_trust_what_it_had_seen() {
    let mut stage = Stage::new();
    let other = stage.lease("other", 0);
    let held = Next::HeldBy("other".into());
    assert_eq!(stage.attempt(Some(&other), &[]), held);
    // A restored backup may show the same record again, and its holder may be alive.
    stage.suspend(60 * SECOND);
    assert_eq!(stage.attempt(Some(&other), &[]), held);
    stage.advance(14 * SECOND);
    assert_eq!(stage.attempt(Some(&other), &[]), held);
    stage.advance(SECOND);
    assert_eq!(stage.attempt(Some(&other), &[]), Next::Held);
}

#[test]
fn tries_without_an_answer_are_no_suspension() {
    let mut stage = Stage::new();
    let other = stage.lease("other", 0);
    assert_eq!(
        stage.attempt(Some(&other), &[]),
        Next::HeldBy("other".into())
    );
    for _ in 0..20 {
        stage.advance(7 * SECOND);
        assert_eq!(stage.election.attempt(stage.at), Request::Get);
        assert_eq!(
            stage.election.answered(Answer::Failed, stage.at),
            Next::Failed
        );
    }
    stage.advance(2 * SECOND);
    assert_eq!(stage.attempt(Some(&other), &[]), Next::Held);
}

/// An earlier process with the same identity, such as that of a StatefulSet.
#[test]
fn acquisition_by_last_holder_is_another_transition() {
    let mut stage = Stage::new();
    let own = stage.lease("me", 3);
    assert_eq!(stage.attempt(Some(&own), &[]), Next::Held);
    assert_eq!(stage.record().transitions, 4);
    assert_eq!(stage.attempt(None, &[0]), Next::Held);
    assert_eq!(stage.record().transitions, 4, "a renewal is none");
}
