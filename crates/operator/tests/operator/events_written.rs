//! Tests of Events as they are written, counted and aggregated.

use k8s_openapi::api::core::v1::{Event as CoreEvent, Namespace, ObjectReference};
use k8s_openapi::api::events::v1::Event as EventsEvent;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, DeleteParams};
use kube::{Resource, ResourceExt};
use lariat_cluster::testing;
use lariat_controller::Outcome;
use lariat_operator::{Event, EventApi, EventOptions, Reconcile};
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, settle};
use crate::events_bench::pod_in;

#[tokio::test(start_paused = true)]
async fn a_reconciler_says_what_happened_to_its_object() {
    let bench = Bench::new().await;
    let sized = |cx: Reconcile<Widget>| async move {
        let event = Event::normal("Sized", format!("size is {}", cx.object().spec.size));
        cx.event(event.action("Sizing").annotation("demo.dev/why", "asked"));
        Ok(Outcome::done())
    };
    let sizes = bench.operator.reconciler("sizes", &bench.widgets);
    sizes.register(sized).unwrap();
    bench.start().await;
    let widget = bench.create("a", 3).await;
    settle().await;
    let events = bench.events().await;
    let [event] = &events[..] else {
        panic!("{events:?}");
    };
    let expected = ObjectReference {
        api_version: Some("demo.dev/v1".to_owned()),
        kind: Some("Widget".to_owned()),
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        uid: widget.uid(),
        resource_version: widget.resource_version(),
        field_path: None,
    };
    assert_eq!(event.involved_object, expected);
    assert_eq!(event.namespace().as_deref(), Some("default"));
    assert!(event.name_any().starts_with("a."), "{}", event.name_any());
    assert_eq!(event.annotations()["demo.dev/why"], "asked");
    let texts = [&event.type_, &event.reason, &event.message, &event.action];
    let expected = ["Normal", "Sized", "size is 3", "Sizing"];
    assert_eq!(texts.map(Option::as_deref), expected.map(Some));
    assert_eq!(event.reporting_component.as_deref(), Some("widgeteer"));
    assert!(event.reporting_instance.is_some());
    let source = event.source.as_ref().and_then(|it| it.component.as_deref());
    assert_eq!(source, Some("widgeteer"));
    assert_eq!(event.count, Some(1));
    assert!(event.first_timestamp.is_some() && event.event_time.is_none());
    assert_eq!(event.first_timestamp, event.last_timestamp);
    let requests = bench
        .cluster
        .journal()
        .select()
        .resource("events")
        .verb("create")
        .requests();
    assert!(
        requests[0].query.contains("fieldManager=widgeteer"),
        "{requests:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_event_is_counted_in_one_object() {
    let bench = Bench::new().await;
    for _ in 0..3 {
        bench.say("web", "hello");
    }
    settle().await;
    let events = bench.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].count, Some(3));
    assert_eq!(bench.writes(), (1, 2));
    assert_eq!(bench.status().sent, 3);
}

#[tokio::test(start_paused = true)]
async fn what_differs_in_its_note_is_combined_from_the_tenth_on() {
    let bench = Bench::new().await;
    for note in 0..12 {
        bench.say("web", &format!("note {note}"));
    }
    settle().await;
    assert_eq!(bench.writes(), (10, 2));
    let events = bench.events().await;
    let combined = events.iter().find(|event| event.count == Some(3));
    let note = combined.and_then(|event| event.message.as_deref());
    assert_eq!(note, Some("(combined from similar events): note 11"));
}

#[tokio::test(start_paused = true)]
async fn an_object_has_25_writes_and_one_more_every_five_minutes() {
    let bench = Bench::new().await;
    for _ in 0..40 {
        bench.say("web", "again");
    }
    bench.say("other", "once");
    settle().await;
    assert_eq!(bench.writes(), (2, 24));
    assert_eq!(bench.status().filtered, 15);
    time::sleep(300 * SECOND).await;
    bench.say("web", "again");
    settle().await;
    assert_eq!(bench.writes(), (2, 25));
    let events = bench.events().await;
    assert!(
        events.iter().any(|event| event.count == Some(41)),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn options_hold_for_everybody_who_has_the_recorder() {
    let bench = Bench::new().await;
    let early = bench.operator.events();
    let options = EventOptions::default().burst(1);
    bench
        .operator
        .events()
        .configure(options.spam_key(|_, event| event.reason().to_owned()));
    for pod in ["a", "b", "c"] {
        early.publish(&pod_in("default", pod), Event::normal("Made", ""));
    }
    settle().await;
    assert_eq!(bench.writes(), (1, 0));
    assert_eq!(bench.status().filtered, 2);
}

#[tokio::test(start_paused = true)]
async fn objects_in_no_namespace_have_their_events_in_default() {
    let bench = Bench::new().await;
    let client = bench.cluster.client();
    let recorder = bench.operator.events();
    let team = testing::namespace("team").create(&client).await.unwrap();
    let team: Namespace = Api::all(client.clone())
        .get(&team.name_any())
        .await
        .unwrap();
    recorder.publish(&team.object_ref(&()), Event::normal("Labelled", "x"));
    let mut role = ClusterRole::default();
    role.metadata.name = Some("system:demo:Viewer".to_owned());
    recorder.publish(&role.object_ref(&()), Event::warning("TooWide", "x"));
    role.metadata.name = Some("x".repeat(253));
    recorder.publish(&role.object_ref(&()), Event::warning("TooLong", "x"));
    recorder.publish(&ObjectReference::default(), Event::normal("Nothing", "x"));
    settle().await;
    let events = bench.events().await;
    assert_eq!(events.len(), 4, "{:?}", bench.status());
    for event in &events {
        assert_eq!(event.namespace().as_deref(), Some("default"));
        assert_eq!(event.involved_object.namespace, None);
        assert!(event.name_any().len() <= 253);
    }
    let names: Vec<String> = events.iter().map(ResourceExt::name_any).collect();
    assert!(
        names
            .iter()
            .any(|name| name.starts_with("system-demo-viewer.")),
        "{names:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_gone_is_made_again() {
    let bench = Bench::new().await;
    bench.say("web", "hello");
    settle().await;
    let name = bench.events().await[0].name_any();
    let events: Api<CoreEvent> = Api::namespaced(bench.cluster.client(), "default");
    events
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    bench.say("web", "hello");
    settle().await;
    let again = bench.events().await;
    assert_eq!((again.len(), again[0].count), (1, Some(2)));
    assert_eq!(bench.writes(), (2, 1));
    // The server deletes Events after an hour.
    time::sleep(2 * 3600 * SECOND).await;
    assert_eq!(bench.events().await.len(), 0);
    bench.say("web", "hello");
    settle().await;
    assert_eq!(bench.events().await[0].count, Some(3));
    assert_eq!(bench.status().failed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_series_costs_two_writes_and_one_when_it_is_over() {
    let bench = Bench::new().await;
    let options = EventOptions::default().api(EventApi::Events);
    bench.operator.events().configure(options);
    for note in 0..5 {
        bench.say("web", &format!("note {note}"));
    }
    settle().await;
    assert_eq!(bench.writes(), (1, 1));
    let api: Api<EventsEvent> = Api::namespaced(bench.cluster.client(), "default");
    let event = api.list(&kube::api::ListParams::default()).await.unwrap();
    let event = &event.items[0];
    assert_eq!(event.note.as_deref(), Some("note 0"));
    assert_eq!(event.action.as_deref(), Some("Created"));
    assert_eq!(event.reporting_controller.as_deref(), Some("widgeteer"));
    assert!(event.event_time.is_some() && event.deprecated_count.is_none());
    time::sleep(361 * SECOND).await;
    assert_eq!(bench.writes(), (1, 2));
    let event = api.get(&event.name_any()).await.unwrap();
    assert_eq!(event.series.map(|series| series.count), Some(5));
}
