use super::*;
use crate::check::operator::harness::OperatorHarness;
use serde_json::json;

fn kind() -> Gvk {
    Gvk::new("", "v1", "Event")
}

fn event(note: &str) -> Value {
    json!({
        "involvedObject": {"kind": "Shop", "name": "o1", "namespace": "default", "uid": "u"},
        "reason": "Stocked", "type": "Normal", "message": note, "count": 1,
        "reportingComponent": OPERATOR,
    })
}

#[tokio::test]
async fn an_event_that_is_counted_is_fine_and_one_that_counts_down_is_not() {
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    harness.create(&kind(), "e1", &event("a")).await;
    harness.create(&kind(), "e2", &event("b")).await;
    harness.patch(&kind(), "e1", &json!({"count": 5})).await;
    assert!(harness.all().is_empty(), "{:?}", harness.all());
    harness.patch(&kind(), "e1", &json!({"count": 4})).await;
    assert!(
        harness.found("goes down from 5 to 4"),
        "{:?}",
        harness.all()
    );
}

#[tokio::test]
async fn the_same_event_twice_in_a_life_is_reported() {
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    harness.create(&kind(), "e1", &event("a")).await;
    harness.operates();
    harness.create(&kind(), "e2", &event("a")).await;
    assert!(
        harness.all().is_empty(),
        "each of two incarnations may: {:?}",
        harness.all()
    );
    harness.create(&kind(), "e3", &event("a")).await;
    assert!(harness.found("e3 is Event 3"), "{:?}", harness.all());
}

#[tokio::test]
async fn a_series_that_is_over_when_a_backup_is_restored_is_followed_by_another() {
    let kind = Gvk::new("events.k8s.io", "v1", "Event");
    let series = json!({
        "regarding": {"kind": "Shop", "name": "o1", "namespace": "default", "uid": "u"},
        "reason": "Blocked", "type": "Warning", "note": "a", "action": "Blocked",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": OPERATOR, "reportingInstance": "i",
    });
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    harness.create(&kind, "e1", &series).await;
    let backup = harness.backup();
    harness.wait(SERIES);
    harness.restore(&backup).await;
    harness.create(&kind, "e2", &series).await;
    assert!(harness.all().is_empty(), "{:?}", harness.all());
    harness.create(&kind, "e3", &series).await;
    assert!(harness.found("e3 is Event 3"), "{:?}", harness.all());
}

#[tokio::test]
async fn more_events_than_the_limit_allows_are_reported() {
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    for number in 0..BURST + 1 {
        let name = format!("e{number}");
        harness.create(&kind(), &name, &event(&name)).await;
    }
    assert!(harness.all().is_empty(), "{:?}", harness.all());
    harness.create(&kind(), "last", &event("last")).await;
    assert!(
        harness.found("27 Events were written"),
        "{:?}",
        harness.all()
    );
}

#[tokio::test]
async fn changes_of_metadata_are_not_counted_as_written() {
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    harness.create(&kind(), "e", &event("a")).await;
    for count in 2..=BURST + 1 {
        let touched = json!({"metadata": {"annotations": {"touched": count.to_string()}}});
        harness.patch(&kind(), "e", &touched).await;
        harness.patch(&kind(), "e", &json!({"count": count})).await;
    }
    assert!(harness.all().is_empty(), "{:?}", harness.all());
    harness.patch(&kind(), "e", &json!({"count": 100})).await;
    assert!(
        harness.found("27 Events were written"),
        "{:?}",
        harness.all()
    );
}

fn published() -> OperatorAction {
    OperatorAction::Published {
        uid: "u".to_owned(),
        reason: SETTLED,
    }
}

#[tokio::test]
async fn what_is_published_while_the_operator_stops_may_be_dropped() {
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    harness.did(OperatorAction::Stops);
    harness.did(published());
    harness.rest();
    assert!(harness.all().is_empty(), "{:?}", harness.all());
    harness.did(OperatorAction::Starts);
    harness.did(published());
    harness.rest();
    assert!(harness.found("no Event says"), "{:?}", harness.all());
}

#[tokio::test]
async fn an_event_that_is_missing_at_rest_is_reported() {
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    harness.did(published());
    harness.rest();
    assert!(harness.found("no Event says"), "{:?}", harness.all());
    let mut harness = OperatorHarness::new(Events::default()).await;
    harness.operates();
    harness.did(published());
    let mut settled = event("all is in order");
    settled["reason"] = SETTLED.into();
    harness.create(&kind(), "e1", &settled).await;
    harness.rest();
    assert!(harness.all().is_empty(), "{:?}", harness.all());
}
