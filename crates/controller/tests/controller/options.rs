//! Options of factories, kinds and handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat_cache::{KindOptions, MissingKind, Selection};
use lariat_controller::{
    Context, ControllerOptions, FactoryBuilder, HandlerOptions, HandlerResult, Outcome,
    RegisterError, Resync, StartError,
};
use lariat_core::Gvk;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, settle};

fn config_map() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// Records the maximum number of concurrent calls.
#[derive(Clone, Default)]
struct Busy(Arc<(AtomicUsize, AtomicUsize)>);

impl Busy {
    async fn work(&self) {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        time::sleep(SECOND).await;
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

/// Returns how many keys of a kind are processed concurrently.
async fn workers(kind: Option<usize>, argument: Option<usize>, default: Option<usize>) -> usize {
    let bench = Bench::with(|mut builder| {
        if let Some(default) = default {
            builder = builder.default_options(ControllerOptions::default().workers(default));
        }
        if let Some(kind) = kind {
            builder =
                builder.kind_options(config_map(), ControllerOptions::default().workers(kind));
        }
        builder
    })
    .await;
    let busy = Busy::default();
    let working = busy.clone();
    bench.on("busy", move |_| {
        let working = working.clone();
        async move {
            working.work().await;
            Ok(Outcome::done())
        }
    });
    for number in 0..20 {
        bench.create(&format!("o{number}")).await;
    }
    bench.factory.start(argument).await.expect("it works");
    time::sleep(30 * SECOND).await;
    assert_eq!(bench.status().workers, Some(busy.most()));
    busy.most()
}

#[tokio::test(start_paused = true)]
async fn workers_are_the_kind_s_then_the_start_s_then_the_default_then_five() {
    assert_eq!(workers(Some(2), Some(3), Some(4)).await, 2);
    assert_eq!(workers(None, Some(3), Some(4)).await, 3);
    assert_eq!(workers(None, None, Some(4)).await, 4);
    assert_eq!(workers(None, None, None).await, 5);
}

#[tokio::test(start_paused = true)]
async fn no_workers_are_an_error_wherever_they_are_asked_for() {
    let none = || ControllerOptions::default().workers(0);
    let bench = Bench::with(|builder| builder.kind_options(config_map(), none())).await;
    let gvk = Some(config_map());
    let error = bench.factory.start(5).await.unwrap_err();
    assert_eq!(error, StartError::NoWorkers { gvk });
    assert_eq!(
        error.to_string(),
        "v1 ConfigMap has 0 workers and would never call a handler; set at least 1"
    );
    let many = |builder: FactoryBuilder| {
        let gvks = ('a'..='z').map(|kind| Gvk::new("", "v1", &kind.to_string()));
        gvks.fold(builder, |builder, gvk| builder.kind_options(gvk, none()))
    };
    let bench = Bench::with(many).await;
    let gvk = Some(Gvk::new("", "v1", "a"));
    let error = bench.factory.start(5).await.unwrap_err();
    assert_eq!(error, StartError::NoWorkers { gvk }, "the first is named");
    let bench = Bench::with(|builder| builder.default_options(none())).await;
    let error = bench.factory.start(None).await.unwrap_err();
    assert_eq!(error, StartError::NoWorkers { gvk: None });
    bench.factory.start(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_handler_does_not_say_its_kind_says_then_the_factory() {
    let timeout = |seconds: u32| HandlerOptions::default().timeout(seconds * SECOND);
    let options = |seconds| ControllerOptions::default().handlers(timeout(seconds));
    let bench = Bench::with(|builder| {
        builder
            .default_options(options(30))
            .kind_options(config_map(), options(20))
    })
    .await;
    let slow = |_| async {
        time::sleep(100 * SECOND).await;
        Ok(Outcome::done())
    };
    let calls = [
        bench.on_with("own", timeout(10), slow),
        bench.on("kind's", slow),
        bench.on_with("none", timeout(0), slow),
    ];
    let secrets = bench.factory.for_object::<Secret>();
    secrets
        .register_handler("factory's", |_: Context<Secret>| async {
            time::sleep(100 * SECOND).await;
            Ok(Outcome::done())
        })
        .unwrap();
    secrets.enqueue(&key("s"));
    bench.start().await;
    bench.create("a").await;
    let began = Instant::now();
    time::sleep(131 * SECOND).await;
    let at = |index: usize| (calls[index].all()[0].at - began).as_secs();
    assert_eq!((at(0), at(1), at(2)), (0, 10, 30));
    let handlers = bench.status().handlers;
    let timeouts: Vec<u64> = handlers.iter().map(|handler| handler.timeouts).collect();
    assert_eq!(timeouts, [1, 1, 0]);
    let busy = secrets.status().unwrap().handlers[0].times.max();
    assert_eq!(busy.as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_kind_may_be_missing_or_slow_on_its_own_terms() {
    let waits = KindOptions::default().missing_kind(MissingKind::Wait);
    let widget = Gvk::new("demo.dev", "v1", "Widget");
    let bench = Bench::with(|builder| {
        let hurried = waits.clone().sync_timeout(5 * SECOND);
        builder.kind_options(widget.clone(), ControllerOptions::default().cache(hurried))
    })
    .await;
    bench.record("log");
    let widgets = bench.factory.for_kind(widget.clone());
    widgets.enqueue(&key("a"));
    let began = Instant::now();
    let error = bench.factory.start(2).await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 5);
    let StartError::NotSynced(error) = error else {
        panic!("{error}");
    };
    let kinds: Vec<_> = error.kinds.iter().map(|kind| &kind.gvk).collect();
    assert_eq!((kinds, error.after), (vec![&widget], Some(5 * SECOND)));
}

#[tokio::test(start_paused = true)]
async fn a_kind_can_be_restricted_to_namespaces_and_labels() {
    let bench = Bench::with(|builder| {
        let selection = Selection::all()
            .in_namespaces(["default"])
            .with_labels("app=web".parse().unwrap());
        let cache = KindOptions::default().selection(selection);
        builder.kind_options(config_map(), ControllerOptions::default().cache(cache))
    })
    .await;
    let calls = bench.record("log");
    bench.start().await;
    bench.create("other").await;
    bench
        .apply(serde_json::json!({"metadata": {"name": "web", "labels": {"app": "web"}}}))
        .await;
    settle().await;
    assert_eq!(calls.names(), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn only_what_has_changed_can_be_asked_for() {
    let resyncs = || KindOptions::default().resync(60 * SECOND);
    let options = ControllerOptions::default().cache(resyncs()).only_changed();
    let bench = Bench::with(|builder| builder.kind_options(config_map(), options)).await;
    let changed = bench.record("changed");
    let all = bench.record_with("all", HandlerOptions::default().resync(Resync::OfKind));
    bench.create("a").await;
    bench.start().await;
    time::sleep(600 * SECOND).await;
    assert_eq!(changed.len(), 1);
    assert!((9..=12).contains(&all.len()), "{}", all.len());
    assert_eq!(all.last().causes, "resync");
}

#[tokio::test(start_paused = true)]
async fn options_that_make_no_sense_are_refused_by_name() {
    let bench = Bench::new().await;
    async fn nothing(_: Context<ConfigMap>) -> HandlerResult {
        Ok(Outcome::done())
    }
    let none = HandlerOptions::default().concurrency(0);
    let error = bench
        .config_maps
        .register_handler("log", none.handler(nothing));
    let error = error.unwrap_err();
    assert!(
        matches!(error, RegisterError::NoConcurrency { .. }),
        "{error}"
    );
    let bad = lariat_cache::ClientIdentity::default().user_agent("two\nlines");
    let bad = HandlerOptions::default().identity(bad);
    let error = bench
        .config_maps
        .register_handler("log", bad.handler(nothing));
    assert_eq!(
        error.unwrap_err().to_string(),
        "the identity of handler \"log\" of v1 ConfigMap is invalid"
    );
    assert!(bench.config_maps.status().is_none(), "nothing was created");
}
