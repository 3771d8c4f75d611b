//! Tests of the counts of guards with a manual clock.

use std::collections::HashMap;
use std::time::Duration;

use lariat_core::ObjectKey;
use tokio::time::Instant;

use super::budget::Budget;
use super::rules::{Act, Rule, Verbs};
use super::state::{Counts, Request, Ruling, Ticket};

const MINUTE: Duration = Duration::from_secs(60);

/// Counts with their rules, and a clock that is set by hand.
struct Bench {
    state: Counts,
    rules: Vec<Rule>,
    reset_after: Option<Duration>,
    now: Instant,
}

impl Bench {
    fn new(rules: &[(Verbs, Budget)]) -> Self {
        let rules = rules.iter().map(|&(verbs, budget)| Rule { verbs, budget });
        Self {
            state: Counts::default(),
            rules: rules.collect(),
            reset_after: None,
            now: Instant::now(),
        }
    }

    fn ask(&mut self, act: Act, plural: &str, objects: Option<usize>, cached: usize) -> Ruling {
        let request = Request {
            weight: Some(1),
            act,
            then: Vec::new(),
            key: None,
            what: &"write it",
            api_path: "/api/v1",
            plural,
            objects,
            cached,
        };
        self.state
            .admit(self.now, &self.rules, self.reset_after, &request)
    }

    /// Asks for the deletion of an object that is applied again afterwards.
    fn replace(&mut self, key: &ObjectKey) -> Ruling {
        self.about(key, Act::Delete, &[Act::Change])
    }

    fn about(&mut self, key: &ObjectKey, act: Act, then: &[Act]) -> Ruling {
        let request = Request {
            weight: Some(1),
            act,
            then: then.to_vec(),
            key: Some(key),
            what: &"write it",
            api_path: "/api/v1",
            plural: "pods",
            objects: Some(1),
            cached: 100,
        };
        self.state
            .admit(self.now, &self.rules, self.reset_after, &request)
    }

    fn delete(&mut self) -> Ruling {
        self.ask(Act::Delete, "pods", Some(1), 100)
    }

    /// Counts a deletion, which must be admitted.
    fn deleted(&mut self) -> Ticket {
        match self.delete() {
            Ruling::Counted(ticket) => ticket,
            _ => panic!("it is refused"),
        }
    }

    fn is_tripped(&mut self) -> bool {
        self.state.state(self.now).is_tripped()
    }
}

/// Asks for writes in a row, and compares the answers.
///
/// Each answer is a letter: counted, passed, tripped, or refused before or for itself.
fn check(rules: &[(Verbs, Budget)], asked: &[(Act, &str, Option<usize>, usize)], expected: &str) {
    let mut bench = Bench::new(rules);
    let mut said = String::new();
    for &(act, plural, objects, cached) in asked {
        said.push(match bench.ask(act, plural, objects, cached) {
            Ruling::Counted(_) => 'c',
            Ruling::NotCounted => '-',
            Ruling::Announced(_) => 'a',
            Ruling::Tripped { is_first: true, .. } => 'T',
            Ruling::Tripped { .. } => 'r',
            Ruling::Unknown | Ruling::NoWeight => '?',
        });
    }
    assert_eq!(said, expected, "{rules:?}, {asked:?}");
}

#[test]
fn budgets_are_for_the_writes_they_name() {
    use Act::{Change, Create, Delete};
    let one = Budget::rate(1, MINUTE);
    let each = |act| (act, "pods", Some(1), 100);
    let all = [Delete, Create, Change, Delete, Create, Change].map(each);
    check(&[(Verbs::Deletes, one)], &all, "c--T--");
    check(&[(Verbs::Creates, one)], &all, "-c--T-");
    check(&[(Verbs::Changes, one)], &all, "--c--T");
    check(&[(Verbs::All, one)], &all, "cTrrrr");
    check(&[], &all, "------");
    let both = [
        (Verbs::Deletes, one),
        (Verbs::Creates, Budget::rate(9, MINUTE)),
    ];
    check(&both, &all, "cc-Tr-");
}

#[test]
fn shares_are_of_each_kind_and_rates_of_all() {
    use Act::Delete;
    let share = Budget::share(0.5, MINUTE);
    let asked = [
        (Delete, "pods", Some(1), 4),
        (Delete, "nodes", Some(1), 2),
        (Delete, "pods", Some(1), 3),
        (Delete, "nodes", Some(1), 2),
    ];
    check(&[(Verbs::Deletes, share)], &asked, "cccT");
    let rate = Budget::rate(2, MINUTE);
    check(&[(Verbs::Deletes, rate)], &asked, "ccTr");
    let unknown = [(Delete, "pods", Some(1), 0), (Delete, "pods", Some(1), 0)];
    check(&[(Verbs::Deletes, share)], &unknown, "cT");
}

#[test]
fn collections_count_as_what_is_in_them() {
    use Act::Delete;
    let ten = [(Verbs::Deletes, Budget::rate(10, MINUTE))];
    let of = |objects| (Delete, "pods", objects, 100);
    check(
        &ten,
        &[of(Some(6)), of(Some(3)), of(Some(1)), of(Some(1))],
        "cccT",
    );
    // At least as one.
    check(&ten, &[of(Some(9)), of(Some(0)), of(Some(0))], "ccT");
    check(&ten, &[of(Some(11)), of(Some(1))], "Tr");
    check(&ten, &[of(None), of(Some(10))], "?c");
    let none = [(Verbs::Creates, Budget::rate(0, MINUTE))];
    check(&none, &[of(None)], "-");
}

#[test]
fn a_refusal_by_one_budget_uses_up_no_other() {
    let rules = [
        (Verbs::All, Budget::rate(2, MINUTE)),
        (Verbs::Deletes, Budget::rate(0, MINUTE)),
    ];
    let mut bench = Bench::new(&rules);
    assert!(matches!(bench.delete(), Ruling::Tripped { .. }));
    bench.state.reset();
    bench.rules.pop();
    bench.deleted();
    bench.deleted();
    assert!(matches!(bench.delete(), Ruling::Tripped { .. }));
}

#[test]
fn what_is_given_back_can_be_used_again_but_not_after_a_reset() {
    let mut bench = Bench::new(&[
        (Verbs::Deletes, Budget::rate(2, MINUTE)),
        (Verbs::All, Budget::share(0.02, MINUTE)),
    ]);
    let first = bench.deleted();
    bench.deleted();
    bench.state.give_back(&first);
    let third = bench.deleted();
    bench.state.reset();
    bench.deleted();
    bench.state.give_back(&third);
    bench.deleted();
    assert!(matches!(bench.delete(), Ruling::Tripped { .. }));
}

#[test]
fn it_stays_tripped_until_it_is_reset() {
    let mut bench = Bench::new(&[(Verbs::Deletes, Budget::rate(1, MINUTE))]);
    bench.deleted();
    assert!(matches!(
        bench.delete(),
        Ruling::Tripped { is_first: true, .. }
    ));
    bench.now += 1000 * MINUTE;
    assert!(matches!(
        bench.delete(),
        Ruling::Tripped {
            is_first: false,
            ..
        }
    ));
    let state = bench.state.state(bench.now);
    let trip = state.trip().expect("tripped");
    assert_eq!((trip.refused(), trip.until()), (2, None));
    let reason = "the budget of deletions, 1 per 60s, is used up: 1 of 1 when asked to write it";
    assert_eq!(trip.reason(), reason);
    assert!(bench.state.reset());
    assert!(!bench.is_tripped());
    bench.deleted();
}

#[test]
fn it_resets_itself_when_it_is_told_to() {
    let mut bench = Bench::new(&[(Verbs::Deletes, Budget::rate(1, 100 * MINUTE))]);
    bench.reset_after = Some(MINUTE);
    bench.deleted();
    assert!(matches!(bench.delete(), Ruling::Tripped { .. }));
    bench.now += MINUTE - Duration::from_nanos(1);
    assert!(bench.is_tripped());
    bench.now += Duration::from_nanos(1);
    assert!(!bench.is_tripped());
    // With an unused budget, although the old one is still remembered by its time.
    bench.deleted();
    assert!(matches!(bench.delete(), Ruling::Tripped { .. }));
}

#[test]
fn budgets_come_back_with_time_while_they_are_kept() {
    let mut bench = Bench::new(&[(Verbs::Deletes, Budget::rate(2, MINUTE))]);
    for _ in 0..100 {
        bench.deleted();
        bench.now += MINUTE / 2 + MINUTE / 100;
    }
}

/// No period sees more writes than its budget, and far below it no write is refused.
#[test]
fn no_time_sees_more_than_its_budget() {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..50 {
        let most = random.u32(1..20);
        let mut bench = Bench::new(&[(Verbs::Deletes, Budget::rate(most, MINUTE))]);
        bench.reset_after = Some(Duration::from_nanos(1));
        let mut written: Vec<Instant> = Vec::new();
        let mut held: HashMap<usize, Ticket> = HashMap::new();
        for _ in 0..500 {
            bench.now += MINUTE.mul_f64(random.f64() / 10.0);
            let now = bench.now;
            let within = |per| written.iter().filter(|at| now - **at < per).count();
            let (sure, maybe) = (within(MINUTE), within(MINUTE + MINUTE / 64));
            match bench.delete() {
                Ruling::Counted(ticket) => {
                    assert!(sure < most as usize, "seed {seed}: too many");
                    written.push(now);
                    held.insert(written.len() - 1, ticket);
                }
                Ruling::Tripped { .. } => {
                    assert!(maybe >= most as usize, "seed {seed}: too early");
                    // The reset forgets earlier writes.
                    bench.now += Duration::from_nanos(1);
                    written.clear();
                    held.clear();
                }
                _ => panic!("seed {seed}: not judged"),
            }
            let last = written.len().checked_sub(1);
            if let Some(last) = last.filter(|_| random.u8(..5) == 0) {
                let ticket = held.remove(&last).expect("it was the last");
                bench.state.give_back(&ticket);
                written.pop();
            }
        }
    }
}

#[test]
fn windows_of_kinds_that_are_not_written_any_more_are_forgotten() {
    let budget = Budget::share(0.5, MINUTE).at_least(3);
    let mut bench = Bench::new(&[(Verbs::Deletes, budget), (Verbs::All, budget)]);
    for number in 0..1_000 {
        let plural = format!("kind-{number}s");
        let ruling = bench.ask(Act::Delete, &plural, Some(1), 100);
        assert!(matches!(ruling, Ruling::Counted(_)), "{number}");
        bench.now += MINUTE / 10;
        let (windows, most) = bench.state.windows();
        assert!(windows <= most + 2 && most < 100, "{windows} of {most}");
    }
    // Counts that still matter are kept.
    for _ in 0..2 {
        bench.ask(Act::Delete, "pods", Some(1), 1);
    }
    for number in 0..100 {
        bench.ask(Act::Delete, &format!("more-{number}s"), Some(1), 100);
    }
    bench.ask(Act::Delete, "pods", Some(1), 1);
    assert!(!bench.is_tripped());
    bench.ask(Act::Delete, "pods", Some(1), 1);
    assert!(bench.is_tripped());
}

#[test]
fn replacement_is_counted_as_whole_before_deletion() {
    let key = ObjectKey::namespaced("default", "web");
    let mut bench = Bench::new(&[(Verbs::All, Budget::rate(1, MINUTE))]);
    assert!(matches!(bench.replace(&key), Ruling::Tripped { .. }));
    let mut bench = Bench::new(&[(Verbs::All, Budget::rate(2, MINUTE))]);
    assert!(matches!(bench.replace(&key), Ruling::Counted(_)));
    // A rule for one of the verbs counts that alone.
    let mut bench = Bench::new(&[
        (Verbs::Deletes, Budget::rate(1, MINUTE)),
        (Verbs::Changes, Budget::rate(1, MINUTE)),
    ]);
    assert!(matches!(bench.replace(&key), Ruling::Counted(_)));
    assert!(matches!(
        bench.ask(Act::Change, "pods", Some(1), 100),
        Ruling::Tripped { .. }
    ));
}

#[test]
fn announced_write_is_admitted_by_tripped_guard_until_done() {
    let (key, other) = (
        ObjectKey::namespaced("default", "web"),
        ObjectKey::namespaced("default", "other"),
    );
    let mut bench = Bench::new(&[(Verbs::All, Budget::rate(2, MINUTE))]);
    let Ruling::Counted(ticket) = bench.replace(&key) else {
        panic!("both fit the budget");
    };
    assert!(matches!(bench.delete(), Ruling::Tripped { .. }));
    assert!(matches!(
        bench.about(&other, Act::Change, &[]),
        Ruling::Tripped { .. }
    ));
    assert!(matches!(
        bench.about(&key, Act::Delete, &[]),
        Ruling::Tripped { .. }
    ));
    // The first attempt fails, the second one succeeds.
    assert!(matches!(
        bench.about(&key, Act::Change, &[]),
        Ruling::Announced(_)
    ));
    let Ruling::Announced(announced) = bench.about(&key, Act::Change, &[]) else {
        panic!("it is still announced");
    };
    bench.state.use_up(&announced);
    assert!(matches!(
        bench.about(&key, Act::Change, &[]),
        Ruling::Tripped { .. }
    ));
    // A deletion that was not executed takes its announcement back.
    bench.state.reset();
    bench.state.give_back(&ticket);
    let Ruling::Counted(ticket) = bench.replace(&key) else {
        panic!("both fit the budget");
    };
    bench.state.give_back(&ticket);
    assert!(matches!(
        bench.about(&key, Act::Change, &[]),
        Ruling::Counted(_)
    ));
}

#[test]
fn deletion_given_back_leaves_what_an_earlier_one_announced() {
    let key = ObjectKey::namespaced("default", "web");
    let mut bench = Bench::new(&[(Verbs::All, Budget::rate(3, MINUTE))]);
    assert!(matches!(bench.replace(&key), Ruling::Counted(_)));
    // Finalizers keep the object, so it is deleted again. The write that follows is counted already.
    let Ruling::Counted(ticket) = bench.replace(&key) else {
        panic!("three writes fit the budget");
    };
    bench.state.give_back(&ticket);
    assert!(matches!(bench.delete(), Ruling::Counted(_)));
    assert!(matches!(bench.delete(), Ruling::Tripped { .. }));
    let Ruling::Announced(announced) = bench.about(&key, Act::Change, &[]) else {
        panic!("the object is deleted and must be created again");
    };
    bench.state.use_up(&announced);
    assert!(matches!(
        bench.about(&key, Act::Change, &[]),
        Ruling::Tripped { .. }
    ));
}

#[test]
fn announced_write_that_never_comes_is_forgotten_after_an_hour() {
    let key = ObjectKey::namespaced("default", "web");
    for (minutes, is_announced) in [(59, true), (60, false)] {
        let mut bench = Bench::new(&[(Verbs::All, Budget::rate(2, MINUTE))]);
        assert!(matches!(bench.replace(&key), Ruling::Counted(_)));
        bench.now += minutes * MINUTE;
        let ruling = bench.about(&key, Act::Change, &[]);
        assert_eq!(matches!(ruling, Ruling::Announced(_)), is_announced);
    }
}

#[test]
fn forgotten_announcements_make_room_for_new_ones() {
    let mut bench = Bench::new(&[(Verbs::All, Budget::rate(10_000, MINUTE))]);
    let key = |number: u32| ObjectKey::namespaced("default", &format!("web-{number}"));
    for number in 0..1_024 {
        assert!(matches!(bench.replace(&key(number)), Ruling::Counted(_)));
    }
    bench.now += 60 * MINUTE;
    assert!(matches!(bench.replace(&key(1_024)), Ruling::Counted(_)));
    assert!(matches!(
        bench.about(&key(1_024), Act::Change, &[]),
        Ruling::Announced(_)
    ));
}
