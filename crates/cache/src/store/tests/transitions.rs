//! The transition table: its rules, and its page in the documentation.

use std::fmt::Write as _;

use lariat_core::ResourceVersion;

use super::super::table::{Age, Effect, Event, State, View, Which, next};

const STATES: [State; 4] = [
    State::Absent,
    State::Reported,
    State::Written,
    State::Removed,
];

const AGES: [Age; 5] = [
    Age::Hidden,
    Age::Older,
    Age::Same,
    Age::Newer,
    Age::Unordered,
];

/// Every event but its age, with its name on the page.
type EventOf = (&'static str, fn(Age) -> Event);

const EVENTS: [EventOf; 12] = [
    ("watch: exists", Event::Watched),
    ("watch: the cached object ended", |age| {
        Event::Ended(Which::Cached, age)
    }),
    ("watch: another object ended", |age| {
        Event::Ended(Which::Another, age)
    }),
    ("list contains it", |age| Event::Listed(age, View::Contains)),
    ("earlier list contains it", |age| {
        Event::Listed(age, View::MayLack)
    }),
    ("list without it ended", |_| Event::Missing(View::Contains)),
    ("earlier list without it ended", |_| {
        Event::Missing(View::MayLack)
    }),
    ("answer: exists", Event::Written),
    ("answer: not selected", Event::Left),
    ("answer: deleted, cached", |_| Event::Deleted(Which::Cached)),
    ("answer: deleted, not cached", |_| {
        Event::Deleted(Which::Another)
    }),
    ("not selected any more", |_| Event::Deselected),
];

fn is_cached(state: State) -> bool {
    matches!(state, State::Reported | State::Written)
}

/// Returns whether an event can happen in a state.
fn is_possible(state: State, event: Event) -> bool {
    let is_age_possible = |age| match state {
        // There is nothing to compare with, but for the version up to which deletions are known.
        State::Absent => match event {
            Event::Written(_) | Event::Left(_) => {
                matches!(age, Age::Hidden | Age::Older | Age::Newer)
            }
            _ => matches!(age, Age::Hidden | Age::Newer),
        },
        _ => true,
    };
    match event {
        Event::Watched(age) | Event::Written(age) | Event::Left(age) => is_age_possible(age),
        Event::Ended(which, age) => {
            age != Age::Hidden
                && is_age_possible(age)
                && (which == Which::Another || is_cached(state))
        }
        Event::Listed(Age::Hidden, view) => view == View::MayLack,
        Event::Listed(age, View::MayLack) => state.is_remembered() && is_age_possible(age),
        Event::Listed(age, View::Contains) => is_age_possible(age),
        Event::Missing(View::Contains) | Event::Deselected | Event::Deleted(Which::Cached) => {
            is_cached(state)
        }
        Event::Missing(View::MayLack) => state == State::Written,
        Event::Deleted(Which::Another) => true,
    }
}

fn cell(state: State, event: Event) -> String {
    if !is_possible(state, event) {
        return " ".to_owned();
    }
    let (after, effect) = next(state, event);
    let after = format!("{after:?}").to_lowercase();
    match effect {
        Effect::Ignored => " – ".to_owned(),
        Effect::Noted => format!(" {after} "),
        Effect::Put => format!(" put, {after} "),
        Effect::Removed => format!(" remove, {after} "),
    }
}

/// Prints the table as it is in the documentation.
fn page() -> String {
    let mut page = String::new();
    page.push_str(
        "| event | age | absent | reported | written | removed |\n|---|---|---|---|---|---|\n",
    );
    for (name, event) in EVENTS {
        // Ages with the same cells share a row.
        let mut rows: Vec<(Vec<String>, String)> = Vec::new();
        let has_age = event(Age::Older) != event(Age::Same);
        for age in AGES.iter().take(if has_age { AGES.len() } else { 1 }) {
            let cells = STATES.map(|state| cell(state, event(*age))).join("|");
            if cells.replace([' ', '|'], "").is_empty() {
                continue;
            }
            let age = has_age.then(|| format!("{age:?}").to_lowercase());
            match rows.iter_mut().find(|(_, known)| *known == cells) {
                Some((ages, _)) => ages.extend(age),
                None => rows.push((age.into_iter().collect(), cells)),
            }
        }
        for (ages, cells) in rows {
            let ages = ages.join(", ");
            writeln!(page, "| {name} | {ages} |{cells}|").unwrap();
        }
    }
    page
}

#[test]
fn transition_table_equals_the_page_of_internals() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/internals.md");
    let internals = std::fs::read_to_string(path).unwrap();
    let from = internals.split_once("| event | age |").expect("a table");
    let lines = internals[from.0.len()..].lines();
    let table = lines.take_while(|line| line.starts_with('|'));
    let table: String = table.map(|line| format!("{line}\n")).collect();
    let page = page();
    assert!(
        table == page,
        "docs/internals.md should have this table:\n\n{page}"
    );
}

#[test]
fn transition_effect_agrees_with_both_states() {
    for (state, event) in every_transition() {
        let (after, effect) = next(state, event);
        let fits = match effect {
            Effect::Ignored => after == state,
            Effect::Noted => is_cached(after) == is_cached(state),
            Effect::Put => is_cached(after),
            Effect::Removed => is_cached(state) && !is_cached(after),
        };
        assert!(fits, "{state:?} {event:?}: {after:?} {effect:?}");
        // Only an answer is remembered, and it stays remembered if the object is no longer selected.
        let is_new = after.is_remembered() && (!state.is_remembered() || effect == Effect::Put);
        assert!(!is_new || event.is_answer(), "{state:?} {event:?}");
    }
}

#[test]
fn deletion_is_published_only_if_server_or_answer_says_so() {
    for (state, event) in every_transition() {
        let says_so = match event {
            Event::Ended(which, _) | Event::Deleted(which) => which == Which::Cached,
            Event::Missing(_) | Event::Left(_) | Event::Deselected => true,
            _ => false,
        };
        let (_, effect) = next(state, event);
        assert!(effect != Effect::Removed || says_so, "{state:?} {event:?}");
    }
}

#[test]
fn remembered_write_is_undone_only_by_something_newer() {
    for (state, event) in every_transition() {
        // A list that began before the answer is older, as is a state before the write.
        let is_older = match event {
            Event::Watched(age) | Event::Ended(_, age) => matches!(age, Age::Hidden | Age::Older),
            Event::Listed(age, View::MayLack) => matches!(age, Age::Hidden | Age::Older),
            Event::Missing(View::MayLack) => true,
            Event::Written(age) | Event::Left(age) => matches!(age, Age::Hidden | Age::Older),
            _ => false,
        };
        if state.is_remembered() && is_older {
            assert_eq!(next(state, event), (state, Effect::Ignored), "{event:?}");
        }
    }
}

#[test]
fn only_answers_are_remembered_and_only_states_complete_content() {
    for (name, event) in EVENTS {
        for age in AGES {
            let event = event(age);
            assert_eq!(event.is_answer(), name.starts_with("answer"), "{event:?}");
            let has_state = name.contains("exists") || name.contains("contains");
            assert_eq!(event.is_same(), has_state && age == Age::Same, "{event:?}");
        }
    }
}

fn every_transition() -> impl Iterator<Item = (State, Event)> {
    let events = EVENTS
        .iter()
        .flat_map(|(_, event)| AGES.iter().map(|age| event(*age)));
    let all = events.flat_map(|event| STATES.map(|state| (state, event)));
    all.filter(|(state, event)| is_possible(*state, *event))
}

#[test]
fn version_age_follows_version_order() {
    for (version, known, age) in [
        ("1", "2", Age::Older),
        ("2", "2", Age::Same),
        ("3", "2", Age::Newer),
        ("x", "x", Age::Same),
        ("x", "y", Age::Unordered),
        ("3", "y", Age::Unordered),
        ("", "", Age::Unordered),
        ("", "2", Age::Unordered),
    ] {
        let [version, known] = [version, known].map(ResourceVersion::new);
        assert_eq!(Age::of(&version, &known), age, "{version} {known}");
    }
}
