//! Tests of Events with failing requests, and of stops.

use lariat_cluster::faults::{Action, Refusal, Rule as Fault, StatusCode};
use lariat_cluster::testing;
use lariat_controller::SharedControllerFactory;
use lariat_operator::{Event, EventApi, EventOptions, Operator, Rule};
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, settle};
use crate::events_bench::pod_in;
use crate::program::{self, Program};

fn unavailable() -> Action {
    Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE))
}

fn on_events(action: Action) -> Fault {
    Fault::new(action).resource("events")
}

#[tokio::test(start_paused = true)]
async fn what_a_server_that_is_down_could_not_take_is_written_later() {
    let actions = [
        unavailable(),
        Action::Refuse(Refusal::too_many_requests()),
        Action::Disconnect,
        Action::NoAnswer,
        Action::Html,
    ];
    for action in actions {
        let bench = Bench::new().await;
        let rule = on_events(action.clone()).for_time(45 * SECOND);
        bench.cluster.faults().add(rule);
        bench.say("a", "first");
        bench.say("a", "first");
        bench.say("b", "second");
        time::sleep(40 * SECOND).await;
        assert_eq!(bench.status().queued, 3, "{action:?}");
        time::sleep(60 * SECOND).await;
        let events = bench.events().await;
        let counts: Vec<_> = events.iter().map(|event| event.count).collect();
        assert_eq!(counts, [Some(2), Some(1)], "{action:?}");
        assert_eq!((bench.status().sent, bench.status().failed), (3, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_makes_no_second_event() {
    for action in [Action::LoseReply, Action::Garble] {
        let bench = Bench::new().await;
        bench
            .cluster
            .faults()
            .add(on_events(action).verb("create").times(1));
        bench.say("web", "hello");
        time::sleep(20 * SECOND).await;
        assert_eq!(bench.events().await.len(), 1);
        assert_eq!(bench.status().sent, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn twelve_tries_are_enough() {
    let bench = Bench::new().await;
    let down = bench.cluster.faults().add(on_events(unavailable()));
    bench.say("a", "first");
    time::sleep(125 * SECOND).await;
    assert_eq!(bench.writes(), (12, 0));
    assert_eq!(bench.status().failed, 1);
    bench.cluster.faults().remove(down);
    // It was never created, so the patch does not find it.
    bench.say("a", "first");
    settle().await;
    assert_eq!(bench.events().await[0].count, Some(2));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_not_tried_again() {
    let bench = Bench::new().await;
    let rule = on_events(Action::Reject("not here".to_owned())).times(1);
    bench.cluster.faults().add(rule);
    bench.say("web", "refused");
    let recorder = bench.operator.events();
    recorder.publish(&pod_in("nowhere", "web"), Event::normal("Made", ""));
    recorder.publish(&pod_in("../../nodes?x=", "web"), Event::normal("Made", ""));
    time::sleep(200 * SECOND).await;
    assert_eq!(bench.writes(), (2, 0), "the last one is not sent at all");
    assert_eq!(bench.status().failed, 3);
    bench.say("web", "written");
    settle().await;
    assert_eq!(bench.events().await.len(), 1, "the task goes on");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_write_events_is_refused_once_each_and_may_be_allowed_later() {
    let cluster = program::cluster().await;
    let client = program::client_of(&cluster, "sesame");
    let factory = SharedControllerFactory::builder(client).build();
    let operator = Operator::new("widgeteer", &factory);
    let recorder = operator.events();
    let say = |pod| recorder.publish(&pod_in("demo", pod), Event::normal("Made", "x"));
    say("a");
    say("b");
    time::sleep(200 * SECOND).await;
    let creates = || cluster.journal().count("create", "events");
    assert_eq!(creates(), 2);
    let status = recorder.status();
    assert_eq!((status.sent, status.failed, status.queued), (0, 2, 0));
    operator.needs(Rule::events());
    let program = Program { cluster, operator };
    program.grant().await;
    let recorder = program.operator.events();
    recorder.publish(&pod_in("demo", "c"), Event::normal("Made", "x"));
    settle().await;
    assert_eq!((recorder.status().sent, recorder.status().failed), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_ends_takes_no_events() {
    let bench = Bench::new().await;
    let client = bench.cluster.client();
    testing::namespace("team").create(&client).await.unwrap();
    let held = testing::config_map("held", &[]).namespace("team");
    held.finalizer("demo.dev/hold")
        .create(&client)
        .await
        .unwrap();
    let namespaces = testing::namespace("team").api(&client);
    namespaces
        .delete("team", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    settle().await;
    let recorder = bench.operator.events();
    recorder.publish(&pod_in("team", "web"), Event::normal("Killed", "x"));
    time::sleep(200 * SECOND).await;
    assert_eq!(bench.writes(), (1, 0));
    assert_eq!(bench.status().failed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_drops_and_does_not_wait() {
    let bench = Bench::new().await;
    bench.cluster.faults().add(on_events(Action::NoAnswer));
    let before = Instant::now();
    for number in 0..1500 {
        bench.say(&format!("web-{number}"), "hello");
    }
    assert_eq!(before.elapsed(), time::Duration::ZERO);
    let status = bench.status();
    assert_eq!((status.queued, status.dropped), (1000, 500));
}

#[tokio::test(start_paused = true)]
async fn a_stop_writes_what_was_just_published_and_a_start_goes_on() {
    let bench = Bench::new().await;
    bench.start().await;
    for number in 0..50 {
        bench.say(&format!("web-{number}"), "hello");
    }
    bench.operator.stop().await.unwrap();
    assert_eq!(bench.events().await.len(), 50);
    bench.say("late", "hello");
    settle().await;
    assert_eq!((bench.status().sent, bench.status().dropped), (50, 1));
    bench.start().await;
    bench.say("later", "hello");
    bench.say("web-0", "hello");
    settle().await;
    assert_eq!(bench.events().await.len(), 51);
    assert_eq!(bench.writes(), (51, 1), "what was counted is not forgotten");
    bench.operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_writes_how_far_a_series_came() {
    let bench = Bench::new().await;
    let options = EventOptions::default().api(EventApi::Events);
    bench.operator.events().configure(options);
    bench.start().await;
    for _ in 0..7 {
        bench.say("web", "hello");
    }
    bench.operator.stop().await.unwrap();
    assert_eq!(bench.writes(), (1, 2));
    let series = bench.events().await.remove(0).series;
    assert_eq!(series.and_then(|series| series.count), Some(7));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_server_that_is_silent() {
    let bench = Bench::new().await;
    bench.start().await;
    bench.cluster.faults().add(on_events(Action::NoAnswer));
    for number in 0..3 {
        bench.say(&format!("web-{number}"), "hello");
    }
    let before = Instant::now();
    bench.operator.stop().await.unwrap();
    assert!(before.elapsed() < 6 * SECOND, "{:?}", before.elapsed());
    let status = bench.status();
    assert_eq!((status.sent, status.dropped, status.queued), (0, 3, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_once_everybody_has_gone() {
    let Bench {
        cluster,
        factory,
        operator,
        widgets,
        ..
    } = Bench::new().await;
    cluster.faults().add(on_events(unavailable()));
    operator
        .events()
        .publish(&pod_in("default", "web"), Event::normal("Made", ""));
    settle().await;
    drop((factory, operator, widgets));
    // The pause before the second attempt is random, so it may have been made already.
    let tries = cluster.journal().count("create", "events");
    assert!(tries > 0);
    time::sleep(300 * SECOND).await;
    assert_eq!(cluster.journal().count("create", "events"), tries);
}

#[tokio::test(start_paused = true)]
async fn a_stop_amid_many_publishers_loses_count_of_none() {
    let bench = Bench::new().await;
    bench.start().await;
    let mut publishers = JoinSet::new();
    for publisher in 0..8 {
        let recorder = bench.operator.events();
        publishers.spawn(async move {
            for number in 0..50 {
                let pod = pod_in("default", &format!("web-{publisher}-{number}"));
                recorder.publish(&pod, Event::normal("Made", ""));
                tokio::task::yield_now().await;
            }
        });
    }
    tokio::task::yield_now().await;
    bench.operator.stop().await.unwrap();
    publishers.join_all().await;
    let status = bench.status();
    assert_eq!(status.sent + status.dropped, 400, "{status:?}");
    assert!(status.sent > 0 && status.queued == 0, "{status:?}");
    assert_eq!(u64::try_from(bench.events().await.len()), Ok(status.sent));
}

#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_what_was_published_before() {
    let bench = Bench::new().await;
    let recorder = bench.operator.events();
    // There is nothing to wait for.
    recorder.flush().await;
    let down = on_events(unavailable()).for_time(45 * SECOND);
    bench.cluster.faults().add(down);
    for pod in ["a", "b", "c"] {
        bench.say(pod, "hello");
    }
    // A flush that is dropped loses nothing.
    let cut = time::timeout(20 * SECOND, recorder.flush()).await;
    assert!(cut.is_err());
    recorder.flush().await;
    let status = bench.status();
    assert_eq!((status.sent, status.queued), (3, 0));
    assert_eq!(bench.events().await.len(), 3);
    recorder.flush().await;
}

#[tokio::test(start_paused = true)]
async fn a_flush_ends_with_what_is_given_up_or_dropped() {
    let bench = Bench::new().await;
    let recorder = bench.operator.events();
    bench.cluster.faults().add(on_events(unavailable()));
    bench.say("a", "hello");
    recorder.flush().await;
    assert_eq!((bench.status().failed, bench.status().queued), (1, 0));
    bench.start().await;
    bench.say("b", "hello");
    let (stopped, ()) = tokio::join!(bench.operator.stop(), recorder.flush());
    stopped.unwrap();
    assert_eq!((bench.status().failed, bench.status().dropped), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_flush_during_a_stop_waits_for_what_is_still_written() {
    let bench = Bench::new().await;
    let recorder = bench.operator.events();
    let slow = on_events(Action::Delay(3 * SECOND));
    bench.cluster.faults().add(slow.times(1));
    bench.start().await;
    bench.say("a", "hello");
    let flushed = async {
        time::sleep(SECOND).await;
        // It is closed by now.
        bench.say("b", "hello");
        let status = bench.status();
        assert_eq!((status.queued, status.dropped), (1, 1));
        recorder.flush().await;
        assert_eq!((bench.status().sent, bench.status().queued), (1, 0));
    };
    let (stopped, ()) = tokio::join!(bench.operator.stop(), flushed);
    stopped.unwrap();
    recorder.flush().await;
    assert_eq!((bench.status().sent, bench.status().queued), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn outside_a_runtime_an_event_is_dropped() {
    let bench = Bench::new().await;
    let recorder = bench.operator.events();
    let publish = move || recorder.publish(&pod_in("default", "web"), Event::normal("Made", ""));
    std::thread::spawn(publish.clone()).join().unwrap();
    assert_eq!(bench.status().dropped, 1);
    publish();
    std::thread::spawn(publish).join().unwrap();
    settle().await;
    assert_eq!(bench.status().sent, 2, "the task runs by now");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_key_of_the_users_killed_starts_again() {
    let bench = Bench::new().await;
    let key = |_: &_, event: &Event| {
        assert_ne!(event.note(), "bad", "as the test wants");
        String::new()
    };
    let options = EventOptions::default().spam_key(key);
    bench.operator.events().configure(options);
    bench.say("a", "bad");
    settle().await;
    bench.say("a", "good");
    settle().await;
    assert_eq!((bench.status().sent, bench.status().dropped), (1, 1));
}
