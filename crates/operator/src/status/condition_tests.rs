//! Tests of the rules of conditions.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn set(conditions: &mut Vec<Condition>, update: &ConditionUpdate, second: i64) -> bool {
    Conditions::set_at(conditions, update, at(second)).unwrap()
}

fn transition(conditions: &[Condition], kind: &str) -> i64 {
    let found = Conditions::find(conditions, kind).unwrap();
    found.last_transition_time.0.as_second()
}

#[test]
fn only_another_status_is_a_transition() {
    let mut conditions = Vec::new();
    let update = ConditionUpdate::is_false("Ready", "Waiting").observed(1);
    assert!(set(&mut conditions, &update, 10));
    assert!(!set(&mut conditions, &update, 20));
    for other in [
        update.clone().message("for pods"),
        ConditionUpdate::is_false("Ready", "Starting").observed(1),
        update.clone().observed(2),
    ] {
        assert!(set(&mut conditions, &other, 30), "{other:?}");
        assert_eq!(transition(&conditions, "Ready"), 10);
    }
    assert!(set(
        &mut conditions,
        &ConditionUpdate::is_true("Ready", "Started"),
        40
    ));
    assert_eq!(transition(&conditions, "Ready"), 40);
    assert!(Conditions::is_true(&conditions, "Ready"));
    assert!(set(
        &mut conditions,
        &ConditionUpdate::is_unknown("Ready", "Lost"),
        50
    ));
    assert!(!Conditions::is_true(&conditions, "Ready"));
    assert_eq!(conditions[0].status, "Unknown");
}

#[test]
fn update_without_generation_keeps_present_one() {
    let mut conditions = Vec::new();
    let update = ConditionUpdate::is_true("Ready", "Deployed");
    assert!(set(&mut conditions, &update.clone().observed(7), 10));
    assert!(!set(&mut conditions, &update, 20));
    assert_eq!(conditions[0].observed_generation, Some(7));
    let lost = ConditionUpdate::is_false("Ready", "Lost");
    assert!(set(&mut conditions, &lost, 30));
    assert_eq!(conditions[0].observed_generation, None);
}

#[test]
fn conditions_stay_where_they_are() {
    let mut conditions = Vec::new();
    for (kind, second) in [("A", 1), ("B", 2), ("C", 3), ("A", 4)] {
        set(
            &mut conditions,
            &ConditionUpdate::is_true(kind, "Is"),
            second,
        );
    }
    set(&mut conditions, &ConditionUpdate::is_false("B", "IsNot"), 5);
    let kinds: Vec<&str> = conditions.iter().map(|each| &*each.type_).collect();
    assert_eq!(kinds, ["A", "B", "C"]);
    assert!(Conditions::remove(&mut conditions, "B"));
    assert!(!Conditions::remove(&mut conditions, "B"));
    assert!(Conditions::find(&conditions, "B").is_none());
    assert!(!Conditions::is_true(&conditions, "B"));
}

#[test]
fn times_are_whole_seconds_as_they_are_on_the_wire() {
    let mut conditions = Vec::new();
    let now = Timestamp::new(7, 900_000_000).unwrap();
    Conditions::set_at(&mut conditions, &ConditionUpdate::is_true("A", "Is"), now).unwrap();
    let json = serde_json::to_string(&conditions).unwrap();
    let read: Vec<Condition> = serde_json::from_str(&json).unwrap();
    assert_eq!(read, conditions);
}

#[test]
fn what_the_api_server_would_refuse_is_refused() {
    let mut conditions = Vec::new();
    for kind in [
        "",
        "-Ready",
        "Rea dy",
        "Example.com/Ready",
        "example.com/",
        "a/b/c",
        "/A",
    ] {
        let update = ConditionUpdate::is_true(kind, "Is");
        let error = Conditions::set(&mut conditions, &update).unwrap_err();
        assert!(matches!(error, ConditionError::Type { .. }), "{kind}");
    }
    for reason in [
        "",
        "two words",
        "9Lives",
        "Ends:",
        "Ümlaut",
        &"A".repeat(1025),
    ] {
        let update = ConditionUpdate::is_true("Ready", reason);
        let error = Conditions::set(&mut conditions, &update).unwrap_err();
        assert!(matches!(error, ConditionError::Reason { .. }), "{reason}");
    }
    let long = ConditionUpdate::is_true("Ready", "Is").message("ä".repeat(LONGEST_MESSAGE + 1));
    let error = Conditions::set(&mut conditions, &long).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the message of condition Ready has 32769 characters; the limit is 32768"
    );
    assert!(conditions.is_empty());
    let longest = ConditionUpdate::is_true("a-b.dev/Re_a-d.y", "A:b,C_9")
        .message("ä".repeat(LONGEST_MESSAGE));
    assert!(set(&mut conditions, &longest, 1));
}
