use super::*;
use crate::check::operator::stage::Stage;
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
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    stage.create(&kind(), "e1", &event("a")).await;
    stage.create(&kind(), "e2", &event("b")).await;
    stage.patch(&kind(), "e1", &json!({"count": 5})).await;
    assert!(stage.all().is_empty(), "{:?}", stage.all());
    stage.patch(&kind(), "e1", &json!({"count": 4})).await;
    assert!(stage.found("goes down from 5 to 4"), "{:?}", stage.all());
}

#[tokio::test]
async fn the_same_event_twice_in_a_life_is_reported() {
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    stage.create(&kind(), "e1", &event("a")).await;
    stage.operates();
    stage.create(&kind(), "e2", &event("a")).await;
    assert!(
        stage.all().is_empty(),
        "each of two lives may: {:?}",
        stage.all()
    );
    stage.create(&kind(), "e3", &event("a")).await;
    assert!(stage.found("e3 is Event 3"), "{:?}", stage.all());
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
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    stage.create(&kind, "e1", &series).await;
    let backup = stage.backup();
    stage.wait(SERIES);
    stage.restore(&backup).await;
    stage.create(&kind, "e2", &series).await;
    assert!(stage.all().is_empty(), "{:?}", stage.all());
    stage.create(&kind, "e3", &series).await;
    assert!(stage.found("e3 is Event 3"), "{:?}", stage.all());
}

#[tokio::test]
async fn more_events_than_the_limit_allows_are_reported() {
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    for number in 0..BURST + 1 {
        let name = format!("e{number}");
        stage.create(&kind(), &name, &event(&name)).await;
    }
    assert!(stage.all().is_empty(), "{:?}", stage.all());
    stage.create(&kind(), "last", &event("last")).await;
    assert!(stage.found("27 Events were written"), "{:?}", stage.all());
}

#[tokio::test]
async fn changes_of_metadata_are_not_counted_as_written() {
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    stage.create(&kind(), "e", &event("a")).await;
    for count in 2..=BURST + 1 {
        let touched = json!({"metadata": {"annotations": {"touched": count.to_string()}}});
        stage.patch(&kind(), "e", &touched).await;
        stage.patch(&kind(), "e", &json!({"count": count})).await;
    }
    assert!(stage.all().is_empty(), "{:?}", stage.all());
    stage.patch(&kind(), "e", &json!({"count": 100})).await;
    assert!(stage.found("27 Events were written"), "{:?}", stage.all());
}

fn published() -> Deed {
    Deed::Published {
        uid: "u".to_owned(),
        reason: SETTLED,
    }
}

#[tokio::test]
async fn what_is_published_while_the_operator_stops_may_be_dropped() {
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    stage.did(Deed::Stops);
    stage.did(published());
    stage.rest();
    assert!(stage.all().is_empty(), "{:?}", stage.all());
    stage.did(Deed::Starts);
    stage.did(published());
    stage.rest();
    assert!(stage.found("no Event says"), "{:?}", stage.all());
}

#[tokio::test]
async fn an_event_that_is_missing_at_rest_is_reported() {
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    stage.did(published());
    stage.rest();
    assert!(stage.found("no Event says"), "{:?}", stage.all());
    let mut stage = Stage::new(Events::default()).await;
    stage.operates();
    stage.did(published());
    let mut settled = event("all is in order");
    settled["reason"] = SETTLED.into();
    stage.create(&kind(), "e1", &settled).await;
    stage.rest();
    assert!(stage.all().is_empty(), "{:?}", stage.all());
}
