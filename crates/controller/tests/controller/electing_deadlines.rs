//! What runs in a leader whose lease ends before it is renewed.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ObjectMeta, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{Context, HandlerError, Outcome};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::bench::{Bench, SECOND, recorder};
use crate::electing_bench::elected;

fn secret(name: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    }
}

/// A process resumes that was suspended beyond its renew deadline.
///
/// All of its timers are late.
#[tokio::test(start_paused = true)]
async fn a_handler_that_continues_after_the_deadline_cannot_write() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one").build();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let (suspended, resumed) = (
        Arc::new(tokio::sync::Notify::new()),
        Arc::new(tokio::sync::Notify::new()),
    );
    let gates = (Arc::clone(&suspended), Arc::clone(&resumed));
    let writes = move |cx: Context<ConfigMap>| {
        let (noted, gates) = (Arc::clone(&noted), gates.clone());
        async move {
            let secrets: Api<Secret> = Api::default_namespaced(cx.client());
            secrets
                .create(&PostParams::default(), &secret("before"))
                .await?;
            gates.0.notify_one();
            gates.1.notified().await;
            let late = secrets
                .create(&PostParams::default(), &secret("late"))
                .await;
            let refused = late.map(drop).map_err(HandlerError::from);
            noted
                .lock()
                .push(refused.as_ref().map_err(ToString::to_string).map(drop));
            refused?;
            Ok(Outcome::done())
        }
    };
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps
        .register_handler("writes", writes)
        .expect("registered");
    factory.start(1).await.expect("started");
    bench.create("a").await;
    suspended.notified().await;
    // The handler is woken first, as a thread that was suspended within it.
    resumed.notify_one();
    tokio::time::advance(20 * SECOND).await;
    sleep(SECOND).await;
    let seen = seen.lock().clone();
    assert!(
        !seen.is_empty(),
        "the handler went on before its call was dropped"
    );
    for refusal in &seen {
        let reason = refusal.as_ref().expect_err("it is too late");
        assert!(
            reason.contains("was not sent: this process does not hold the lease default/shop"),
            "{reason}"
        );
    }
    let secrets: Api<Secret> = Api::default_namespaced(bench.cluster.client());
    assert!(secrets.get_opt("before").await.expect("read").is_some());
    assert!(secrets.get_opt("late").await.expect("read").is_none());
}

/// A worker is woken before the election is, as in a process that was suspended.
#[tokio::test(start_paused = true)]
async fn no_call_begins_in_a_process_that_resumes_after_its_deadline() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one").build();
    let config_maps = factory.for_object::<ConfigMap>();
    let late = Arc::new(Mutex::new(Vec::new()));
    let (noted, leadership) = (
        Arc::clone(&late),
        factory.leadership().expect("it takes part"),
    );
    let handler = move |name: &'static str, takes: Duration| {
        let (noted, leadership) = (Arc::clone(&noted), leadership.clone());
        move |_: Context<ConfigMap>| {
            if !leadership.leads() {
                noted.lock().push(name);
            }
            async move {
                sleep(takes).await;
                Ok::<_, HandlerError>(Outcome::done())
            }
        }
    };
    let slow = handler("slow", Duration::from_millis(100));
    config_maps
        .register_handler("slow", slow)
        .expect("registered");
    let next = handler("next", Duration::ZERO);
    config_maps
        .register_handler("next", next)
        .expect("registered");
    factory.start(1).await.expect("started");
    bench.create("a").await;
    bench.create("b").await;
    sleep(Duration::from_millis(50)).await;
    // The first handler of the first key is under way, the second key in line.
    tokio::time::advance(20 * SECOND).await;
    sleep(SECOND).await;
    let late = late.lock().clone();
    assert!(late.is_empty(), "called without the lease: {late:?}");
}

/// Workers that found the deadline passed waited for the end of their factory, which did not come.
///
/// The answer to a renewal that was under way while the process was suspended moved the deadline.
#[tokio::test(start_paused = true)]
async fn workers_go_on_when_a_late_renewal_is_answered_after_the_deadline() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one").build();
    let (calls, handler) = recorder(|_| async {
        sleep(SECOND).await;
        Ok(Outcome::done())
    });
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps
        .register_handler("slow", handler)
        .expect("registered");
    factory.start(1).await.expect("started");
    let leadership = factory.leadership().expect("it takes part");
    assert!(leadership.acquired().await);
    // Of the renewals after two, four and six seconds, two fail, with two requests each, and the third response is
    // late.
    let renewal = |action| {
        Rule::new(action)
            .client("one")
            .verb("update")
            .resource("leases")
    };
    let refused = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
    let refused = bench
        .cluster
        .faults()
        .add(renewal(Action::Refuse(refused)).times(4));
    let late = bench
        .cluster
        .faults()
        .add(renewal(Action::DelayReply(2 * SECOND)).times(1));
    let deadline = leadership.deadline().expect("it leads");
    sleep(6 * SECOND + SECOND / 2).await;
    bench.create("a").await;
    bench.create("b").await;
    sleep(SECOND / 2).await;
    let hits = [refused, late].map(|rule| bench.cluster.faults().hits(rule));
    assert_eq!((calls.names(), hits), (vec!["a".to_owned()], [4, 1]));

    // The call ended before the answer came, so its worker is woken before the election is.
    tokio::time::advance(4 * SECOND).await;
    let resumed = Instant::now();
    assert!(resumed > deadline);
    sleep(SECOND).await;
    let status = leadership.status();
    assert!(leadership.leads() && status.acquired == 1, "{status:?}");
    assert_eq!(calls.names(), ["a", "b"]);
    assert!(
        calls.last().at > resumed,
        "the worker found the deadline passed"
    );
    factory.stop().await.expect("stopped");
}
