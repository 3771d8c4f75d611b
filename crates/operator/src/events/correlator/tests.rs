//! Tests of the correlators with a manual clock.

use std::collections::HashSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use super::names::Names;
use super::{Correlator, Decision};
use crate::events::record::Pending;
use crate::events::{Event, EventApi, EventOptions};

/// A correlator with its input.
struct Bench {
    correlator: Correlator,
    start: Instant,
    seconds: u64,
    names: Vec<String>,
}

impl Bench {
    fn new(options: EventOptions) -> Self {
        Self {
            correlator: Correlator::new(options),
            start: Instant::now(),
            seconds: 0,
            names: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_secs(self.seconds)
    }

    fn say_about(&mut self, object: &str, event: Event) -> String {
        let seconds = i64::try_from(self.seconds).unwrap_or_default();
        let decision = self.correlator.observe(Pending {
            about: ObjectReference {
                kind: Some("Pod".to_owned()),
                name: Some(object.to_owned()),
                ..ObjectReference::default()
            },
            event,
            at: self.now(),
            time: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_000_000 + seconds),
        });
        self.text(decision)
    }

    fn say(&mut self, note: &str) -> String {
        self.say_about("web", Event::normal("Created", note))
    }

    /// Returns a decision as text: the verb, the Event, the count and the note.
    fn text(&mut self, decision: Decision) -> String {
        let (verb, record) = match decision {
            Decision::Create(record) => ("create", record),
            Decision::Patch(record) => ("patch", record),
            Decision::Counted => return "counted".to_owned(),
            Decision::Filtered => return "filtered".to_owned(),
        };
        let place = self
            .names
            .iter()
            .position(|name| *name == record.name)
            .unwrap_or_else(|| {
                self.names.push(record.name.clone());
                self.names.len() - 1
            });
        let note = record
            .event
            .note()
            .replace("(combined from similar events): ", "~");
        format!("{verb} #{place} x{} {note}", record.count)
    }

    fn due(&mut self) -> Vec<String> {
        let mut due = Vec::new();
        while let Some(record) = self.correlator.take_due(Some(self.now())) {
            due.push(self.text(Decision::Patch(record)));
        }
        due
    }
}

/// Adds notes, each after a number of seconds, and compares the decisions.
fn check(options: EventOptions, said: &[(u64, &str, &str)]) {
    let mut bench = Bench::new(options);
    for (place, (after, note, expected)) in said.iter().enumerate() {
        bench.seconds += after;
        assert_eq!(bench.say(note), *expected, "at {place}");
    }
}

#[test]
fn the_same_event_is_counted() {
    check(
        EventOptions::default(),
        &[
            (0, "a", "create #0 x1 a"),
            (0, "a", "patch #0 x2 a"),
            (0, "b", "create #1 x1 b"),
            (100_000, "a", "patch #0 x3 a"),
        ],
    );
}

#[test]
fn notes_that_are_too_many_are_combined_until_they_stop() {
    let said = [
        (0, "a", "create #0 x1 a"),
        (0, "b", "create #1 x1 b"),
        (0, "c", "create #2 x1 ~c"),
        (10, "d", "patch #2 x2 ~d"),
        (10, "a", "patch #0 x2 a"),
        (10, "c", "patch #2 x3 ~c"),
        (11, "d", "create #3 x1 d"),
        (0, "e", "create #4 x1 e"),
        (0, "f", "patch #2 x4 ~f"),
    ];
    let options = EventOptions::default().aggregate_after(3);
    check(options.aggregate_within(Duration::from_secs(10)), &said);
    check(
        EventOptions::default().aggregate_after(1),
        &[(0, "a", "create #0 x1 ~a"), (0, "b", "patch #0 x2 ~b")],
    );
}

#[test]
fn ten_notes_are_too_many_unless_none_are() {
    for (options, expected) in [
        (EventOptions::default(), "create #9 x1 ~9"),
        (EventOptions::default().aggregate_after(0), "create #9 x1 9"),
    ] {
        let mut bench = Bench::new(options);
        for note in 0..9 {
            let expected = format!("create #{note} x1 {note}");
            assert_eq!(bench.say(&note.to_string()), expected);
        }
        assert_eq!(bench.say("9"), expected);
    }
}

#[test]
fn what_is_over_the_limit_is_counted_by_the_next_write() {
    let options = EventOptions::default()
        .burst(2)
        .refill(Duration::from_secs(10));
    let said = [
        (0, "a", "create #0 x1 a"),
        (0, "a", "patch #0 x2 a"),
        (0, "a", "filtered"),
        (0, "b", "filtered"),
        (10, "a", "patch #0 x4 a"),
        (9, "b", "filtered"),
        (1, "b", "create #1 x3 b"),
    ];
    check(options.clone(), &said);
    let mut bench = Bench::new(options);
    for expected in ["create #0 x1 a", "patch #0 x2 a", "filtered"] {
        assert_eq!(bench.say("a"), expected);
    }
    let other = bench.say_about("other", Event::normal("Created", "a"));
    assert_eq!(
        other, "create #1 x1 a",
        "another object has a limit of its own"
    );
}

#[test]
fn a_key_of_ones_own_decides_what_shares_a_limit() {
    for api in [EventApi::Core, EventApi::Events] {
        let options = EventOptions::default()
            .api(api)
            .burst(1)
            .spam_key(|_, event| event.reason().to_owned());
        let mut bench = Bench::new(options);
        let mut say =
            |object: &str, reason: &str| bench.say_about(object, Event::normal(reason, ""));
        assert_eq!(say("a", "Made"), "create #0 x1 ");
        assert_eq!(say("b", "Made"), "filtered");
        assert_eq!(say("a", "Lost"), "create #1 x1 ");
    }
}

#[test]
fn what_differs_in_anything_but_the_note_is_another_event() {
    for api in [EventApi::Core, EventApi::Events] {
        let mut bench = Bench::new(EventOptions::default().api(api));
        let related = ObjectReference {
            name: Some("x".to_owned()),
            ..ObjectReference::default()
        };
        let events = [
            Event::normal("A", ""),
            Event::warning("A", ""),
            Event::normal("B", ""),
            Event::normal("A", "").action("Doing"),
            Event::normal("A", "").related(related),
        ];
        for (place, event) in events.into_iter().enumerate() {
            let decided = bench.say_about("web", event);
            assert_eq!(decided, format!("create #{place} x1 "));
        }
    }
}

#[test]
fn a_series_is_written_when_it_begins_now_and_then_and_when_it_is_over() {
    let mut bench = Bench::new(EventOptions::default().api(EventApi::Events));
    assert_eq!(bench.correlator.next_due(), None);
    assert_eq!(bench.say("a"), "create #0 x1 a");
    assert_eq!(bench.say("b"), "patch #0 x2 a", "the first note stays");
    let mut written = Vec::new();
    for minute in 1..=65 {
        bench.seconds = minute * 60;
        assert_eq!(bench.say("a"), "counted");
        written.extend(bench.due().into_iter().map(|text| (minute, text)));
    }
    let expected = [(30, "patch #0 x32 a"), (60, "patch #0 x62 a")];
    assert_eq!(
        written,
        expected.map(|(minute, text)| (minute, text.to_owned()))
    );
    let over = bench.now() + Duration::from_secs(360);
    assert_eq!(bench.correlator.next_due(), Some(over));
    bench.seconds += 359;
    assert_eq!(bench.due(), [""; 0]);
    bench.seconds += 1;
    assert_eq!(bench.due(), ["patch #0 x67 a"]);
    assert_eq!(bench.correlator.next_due(), None);
    assert_eq!(bench.say("a"), "create #1 x1 a");
    bench.seconds += 360;
    assert_eq!(bench.due(), [""; 0], "one event is no series");
    assert_eq!(bench.correlator.next_due(), None);
}

#[test]
fn a_series_that_is_cut_short_is_written_as_far_as_it_came() {
    let mut bench = Bench::new(EventOptions::default().api(EventApi::Events));
    for _ in 0..5 {
        bench.say("a");
    }
    bench.say_about("other", Event::normal("Created", "b"));
    let record = bench.correlator.take_due(None);
    assert_eq!(record.map(|record| record.count), Some(5));
    assert_eq!(bench.correlator.take_due(None), None);
}

#[test]
fn what_is_due_together_is_written_in_the_order_in_which_it_was_last_published() {
    let mut bench = Bench::new(EventOptions::default().api(EventApi::Events));
    let objects: Vec<String> = (0..40).map(|number| format!("web-{number}")).collect();
    for _ in 0..3 {
        for object in &objects {
            bench.say_about(object, Event::normal("Created", "a"));
        }
    }
    bench.say_about(&objects[0], Event::normal("Created", "a"));
    let due: Vec<String> = std::iter::from_fn(|| bench.correlator.take_due(None))
        .filter_map(|record| record.about.name)
        .collect();
    let (first, others) = objects.split_first().expect("there are some");
    assert!(due.iter().eq(others.iter().chain([first])), "{due:?}");
}

#[test]
fn a_seed_repeats_the_keys_of_events() {
    let decision = |seed, note: &str| {
        fastrand::seed(seed);
        let mut correlator = Correlator::new(EventOptions::default());
        correlator.observe(Pending {
            about: ObjectReference::default(),
            event: Event::normal("Created", note),
            at: Instant::now(),
            time: Timestamp::UNIX_EPOCH,
        })
    };
    assert_eq!(decision(7, "a"), decision(7, "a"));
    assert_ne!(decision(7, "a"), decision(8, "a"));
}

#[test]
fn a_name_that_is_taken_is_replaced_for_good() {
    for api in [EventApi::Core, EventApi::Events] {
        let mut bench = Bench::new(EventOptions::default().api(api));
        bench.say("a");
        let about = ObjectReference::default();
        let decision = bench.correlator.observe(Pending {
            about,
            event: Event::normal("A", "a"),
            at: bench.now(),
            time: Timestamp::UNIX_EPOCH,
        });
        let Decision::Create(mut record) = decision else {
            panic!("{decision:?}");
        };
        let taken = record.name.clone();
        bench.correlator.rename(&mut record);
        assert_ne!(record.name, taken);
        let decision = bench.correlator.observe(Pending {
            about: record.about.clone(),
            event: Event::normal("A", "a"),
            at: bench.now(),
            time: Timestamp::UNIX_EPOCH,
        });
        assert!(matches!(decision, Decision::Patch(again) if again.name == record.name));
    }
}

#[test]
fn names_never_repeat_even_if_the_clock_does() {
    let mut names = Names::new();
    let times = [5, 5, 3, -9, 5].map(Timestamp::from_second);
    let names: HashSet<String> = times
        .into_iter()
        .map(|time| names.next(Some("web"), time.unwrap()))
        .collect();
    assert_eq!(names.len(), 5);
}

/// An earlier event: time, object, note, whether it was aggregated, and whether it was written.
struct Said {
    at: u64,
    object: usize,
    note: usize,
    combined: bool,
    written: bool,
}

/// A naive decision, from the whole history.
fn naive(history: &mut Vec<Said>, at: u64, object: usize, note: usize) -> String {
    let mut notes = Vec::new();
    let mut last = at;
    let about = history.iter().rev().filter(|said| said.object == object);
    let session: Vec<&Said> = about
        .take_while(|said| {
            let goes_on = last - said.at <= 20;
            last = said.at;
            goes_on
        })
        .collect();
    for note in session.iter().rev().map(|said| said.note).chain([note]) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let combined = notes.iter().position(|known| *known == note) >= Some(3);
    let same = |said: &&Said| {
        said.object == object && said.combined == combined && (combined || said.note == note)
    };
    let count = history.iter().filter(same).count() + 1;
    let exists = history.iter().filter(same).any(|said| said.written);
    // Three tokens, and one more every 15 seconds, counted in seconds.
    let (mut tokens, mut before) = (45, 0);
    for said in history.iter().filter(|said| said.object == object) {
        tokens = 45.min(tokens + said.at - before);
        before = said.at;
        tokens -= if said.written { 15 } else { 0 };
    }
    let written = 45.min(tokens + at - before) >= 15;
    history.push(Said {
        at,
        object,
        note,
        combined,
        written,
    });
    match (written, exists) {
        (false, _) => "filtered".to_owned(),
        (true, true) => format!("patch x{count}"),
        (true, false) => format!("create x{count}"),
    }
}

#[test]
fn it_decides_as_one_that_remembers_everything() {
    for round in 0..100 {
        let mut random = fastrand::Rng::with_seed(round);
        let options = EventOptions::default()
            .aggregate_after(4)
            .burst(3)
            .aggregate_within(Duration::from_secs(20));
        let mut bench = Bench::new(options.refill(Duration::from_secs(15)));
        let mut history = Vec::new();
        for step in 0..200 {
            bench.seconds += [0, 0, 1, 3, 10, 21][random.usize(..6)];
            let (object, note) = (random.usize(..2), random.usize(..8));
            let event = Event::normal("Created", note.to_string());
            let decided = bench.say_about(&object.to_string(), event);
            let words: Vec<&str> = decided.split(' ').collect();
            let decided = match words[..] {
                [verb, _, count, _] => format!("{verb} {count}"),
                _ => decided,
            };
            let expected = naive(&mut history, bench.seconds, object, note);
            assert_eq!(decided, expected, "round {round}, step {step}");
        }
    }
}

#[test]
fn two_replicas_give_different_names_to_what_they_see_at_the_same_time() {
    for api in [EventApi::Core, EventApi::Events] {
        let mut replicas = [(), ()].map(|()| Bench::new(EventOptions::default().api(api)));
        for replica in &mut replicas {
            assert_eq!(replica.say("a"), "create #0 x1 a");
        }
        let [one, other] = replicas;
        assert_ne!(one.names, other.names);
    }
}
