//! Tests of writes against the embedded cluster that need internal access.

use k8s_openapi::api::core::v1::{Event as CoreEvent, ObjectReference};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use lariat_cluster::Cluster;

use super::*;
use crate::events::record::Pending;
use crate::events::{Event, EventOptions};

/// Creates the sink of a process that chooses the same names as every other.
fn sink(client: Client) -> Sink {
    fastrand::seed(7);
    Sink {
        sender: Sink::sender(client),
        source: Arc::new(Source::new("demo", None)),
        correlator: Arc::new(Mutex::new(Correlator::new(EventOptions::default()))),
        counts: Arc::default(),
    }
}

/// Publishes an event, always at the same time.
async fn say(sink: &Sink) {
    let decision = sink.correlator.lock().observe(Pending {
        about: ObjectReference {
            name: Some("web".to_owned()),
            ..ObjectReference::default()
        },
        event: Event::normal("Made", "x"),
        at: time::Instant::now(),
        time: jiff::Timestamp::UNIX_EPOCH,
    });
    sink.act(decision).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_process_took_is_left_to_it() {
    let cluster = Cluster::for_test().await;
    let (one, other) = (sink(cluster.client()), sink(cluster.client()));
    say(&one).await;
    say(&other).await;
    say(&other).await;
    let api: Api<CoreEvent> = Api::namespaced(cluster.client(), "default");
    let mut events: Vec<_> = api
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .iter()
        .map(|it| (it.name_any(), it.count))
        .collect();
    events.sort();
    let counts: Vec<_> = events.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [Some(1), Some(2)], "{events:?}");
    let number = |(name, _): &(String, _)| u64::from_str_radix(&name["web.".len()..], 16);
    let [one, other] = [&events[0], &events[1]].map(|event| number(event).unwrap());
    assert_eq!(other, one + 1, "the first name was taken");
}

#[test]
fn the_first_pause_is_by_chance_and_the_others_are_not() {
    let pauses: Vec<Duration> = (0..20).map(|_| pause(1)).collect();
    assert!(pauses.iter().all(|pause| *pause < PAUSE), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause != pauses[0]), "{pauses:?}");
    assert_eq!((pause(2), pause(11)), (PAUSE, PAUSE));
}

#[test]
fn a_seed_repeats_the_first_pause() {
    let pauses = |seed| {
        fastrand::seed(seed);
        [pause(1), pause(1)]
    };
    assert_eq!(pauses(7), pauses(7));
    assert_ne!(pauses(7), pauses(8));
}

#[test]
fn a_missing_permission_is_named() {
    assert!(rule(EventApi::Core).contains("apiGroups [\"\"]"));
    assert!(rule(EventApi::Events).contains("apiGroups [\"events.k8s.io\"]"));
}
