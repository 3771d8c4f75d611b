use lariat_cache::CachedObject;
use lariat_core::RawObject;
use lariat_sim::internals::{Next, Sample, Subscriber};

use super::*;
use crate::check::harness::{CheckHarness, Server, incarnation, kind, sample};

fn harness(limit: Option<usize>) -> CheckHarness<Overtaking> {
    begun(CheckHarness::of(Overtaking::default()), 0, limit)
}

/// Goes on with a process that is born at a time and whose factory runs.
fn begun(
    mut harness: CheckHarness<Overtaking>,
    at: u64,
    limit: Option<usize>,
) -> CheckHarness<Overtaking> {
    harness.event(at, &Event::IncarnationBegan(incarnation()));
    harness.starts(at);
    harness.registered("h", limit);
    harness.act(at + 1, ActivityKind::Sampled(vec![sample(Some(1))]));
    harness
}

fn publish(harness: &mut CheckHarness<Overtaking>, name: &str) {
    let json = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"namespace":"default","name":"{name}","uid":"u","resourceVersion":"9"}}}}"#
    );
    let raw = RawObject::parse(json.as_bytes(), &kind()).expect("the object is valid");
    let object = Arc::new(CachedObject::new(raw));
    let subscriber = Subscriber {
        incarnation: incarnation(),
        kind: kind(),
        number: 0,
    };
    let change = Change::Added {
        object,
        initial: false,
    };
    harness.event(2, &Event::Published { subscriber, change });
}

fn late() -> Cause {
    Cause::LateHandler {
        handler: Arc::from("h"),
    }
}

#[test]
fn a_change_that_waits_behind_first_calls_is_found() {
    let mut harness = harness(Some(1));
    publish(&mut harness, "fresh");
    for number in 0..6 {
        harness.calls(3, "h", &format!("listed-{number}"), late());
    }
    assert_eq!(harness.found(), 0, "they had begun");
    for number in 6..12 {
        harness.calls(3, "h", &format!("listed-{number}"), late());
    }
    assert!(harness.found() > 0);
}

#[test]
fn a_key_whose_content_a_worker_may_wait_for_is_not_found() {
    for (is_on_demand, is_found) in [(false, true), (true, false)] {
        let mut harness = harness(Some(1));
        let sample = Sample {
            is_on_demand,
            ..sample(Some(1))
        };
        harness.act(2, ActivityKind::Sampled(vec![sample]));
        publish(&mut harness, "fresh");
        for number in 0..12 {
            harness.calls(3, "h", &format!("listed-{number}"), late());
        }
        assert_eq!(harness.found() > 0, is_found, "on demand: {is_on_demand}");
    }
}

#[tokio::test]
async fn what_has_changed_since_its_first_sight_does_not_have_to_wait() {
    let listed: Vec<String> = (0..12).map(|number| format!("listed-{number}")).collect();
    for (changes, is_found) in [(&listed[..0], true), (&listed[..], false)] {
        let server = Server::start().await;
        let mut before = CheckHarness::of(Overtaking::default());
        let mut sights = Vec::new();
        for name in &listed {
            let version = server.create(name).await.revision().into();
            sights.push((name, Cause::Added { version }));
        }
        before.commits(0, server.take());
        let mut harness = begun(before, 1, Some(1));
        for name in changes {
            publish(&mut harness, name);
        }
        publish(&mut harness, "fresh");
        // Set back by a restore, they have the causes of their first sight.
        for (name, observation) in sights {
            harness.calls(3, "h", name, observation);
        }
        assert_eq!(harness.found() > 0, is_found, "{} changes", changes.len());
    }
}

#[test]
fn every_fourth_first_call_is_not_found() {
    let mut harness = harness(Some(1));
    publish(&mut harness, "fresh");
    for number in 0..200 {
        let cause = if number % 4 == 0 {
            late()
        } else {
            Cause::Resync
        };
        harness.calls(3, "h", &format!("key-{number}"), cause);
    }
    assert_eq!(harness.found(), 0);
}

#[test]
fn a_change_that_was_handled_or_has_a_worker_does_not_wait() {
    let mut harness = harness(Some(1));
    publish(&mut harness, "fresh");
    harness.begins(3, "g", "fresh", Cause::Resync.into());
    for number in 0..20 {
        harness.calls(3, "h", &format!("listed-{number}"), late());
    }
    harness.ends(4, "g", "fresh", Next::Done);
    harness.calls(5, "h", "fresh", Cause::Resync);
    for number in 20..40 {
        harness.calls(6, "h", &format!("listed-{number}"), late());
    }
    assert_eq!(harness.found(), 0);
}

#[test]
fn a_change_that_is_published_during_a_stop_waits_for_the_start() {
    let mut harness = harness(Some(1));
    harness.act(1, ActivityKind::Stopping(Duration::from_secs(30)));
    harness.act(1, ActivityKind::Sampled(vec![sample(Some(1))]));
    publish(&mut harness, "written");
    for number in 0..20 {
        harness.calls(3, "h", &format!("listed-{number}"), late());
    }
    assert_eq!(harness.found(), 0);
}

#[test]
fn a_first_call_after_very_many_others_is_found() {
    let mut harness = harness(None);
    for _ in 0..30 {
        harness.calls(3, "h", "busy", Cause::Resync);
    }
    harness.calls(4, "h", "starved", late());
    assert_eq!(harness.found(), 1);
    assert_eq!(harness.check.queue(&incarnation(), &kind()).keys.len(), 2);
}
