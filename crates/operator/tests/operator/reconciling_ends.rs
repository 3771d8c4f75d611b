//! Tests of deletions, and of successors of the same name.

use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{HandlerError, HandlerOptions, HandlerResult, Outcome, Predicate};
use lariat_operator::Reconcile;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, key, settle};
use crate::reconciling::Log;

#[tokio::test(start_paused = true)]
async fn an_object_that_was_replaced_is_gone_before_the_new_one_is_reconciled() {
    let bench = Bench::new().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    bench
        .operator
        .reconciler("sizes", &bench.widgets)
        .on_deleted(move |cx: Reconcile<Widget>| {
            gone.add(format!("{} was {}", cx.key(), cx.object().spec.size));
            async { Ok(Outcome::done()) }
        })
        .register(move |cx: Reconcile<Widget>| {
            let size = cx.object().spec.size;
            seen.add(format!("{} is {size}", cx.key()));
            // Long enough for the object to be replaced meanwhile.
            async move {
                if size == 1 {
                    time::sleep(SECOND).await;
                }
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    bench.create("a", 2).await;
    time::sleep(2 * SECOND).await;
    assert_eq!(
        log.take(),
        ["default/a is 1", "default/a was 1", "default/a is 2"]
    );
}

#[tokio::test(start_paused = true)]
async fn each_of_several_objects_of_a_name_is_gone_before_the_last_is_reconciled() {
    let bench = Bench::new().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    bench
        .operator
        .reconciler("sizes", &bench.widgets)
        .on_deleted(move |cx: Reconcile<Widget>| {
            gone.add(format!("was {}", cx.object().spec.size));
            async { Ok(Outcome::done()) }
        })
        .register(move |cx: Reconcile<Widget>| {
            seen.add(format!("is {}", cx.object().spec.size));
            async {
                time::sleep(SECOND).await;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    for size in [2, 3, 4] {
        bench.delete("a").await;
        bench.create("a", size).await;
    }
    time::sleep(60 * SECOND).await;
    assert_eq!(log.take(), ["is 1", "was 1", "was 2", "was 3", "is 4"]);
}

/// Registers a reconciler whose `on_deleted` and whose first reconciles of big Widgets end as given.
fn replaced(bench: &Bench, gone: fn() -> HandlerResult, failures: u32) -> Log {
    let log = Log::default();
    let (seen, ended) = (log.clone(), log.clone());
    let reconciler = bench.operator.reconciler("sizes", &bench.widgets);
    let registered = reconciler
        .on_deleted(move |cx: Reconcile<Widget>| {
            ended.add(format!("was {}", cx.object().spec.size));
            async move { gone() }
        })
        .register(move |cx: Reconcile<Widget>| {
            let size = cx.object().spec.size;
            seen.add(format!("is {size}"));
            async move {
                if size == 1 {
                    time::sleep(SECOND).await;
                }
                if size == 2 && cx.attempt() <= failures {
                    Err("not yet".into())
                } else {
                    Ok(Outcome::done())
                }
            }
        });
    registered.expect("registered");
    log
}

async fn replace(bench: &Bench) {
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    bench.create("a", 2).await;
    time::sleep(60 * SECOND).await;
}

#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_reported_does_not_keep_the_successor_waiting() {
    let ends: [fn() -> HandlerResult; 2] = [
        || Err(HandlerError::ignore("of no interest")),
        || Err(HandlerError::terminal("never")),
    ];
    for end in ends {
        let bench = Bench::new().await;
        let log = replaced(&bench, end, 0);
        replace(&bench).await;
        assert_eq!(log.take(), ["is 1", "was 1", "is 2"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_is_reported_once_however_often_the_successor_fails() {
    let bench = Bench::new().await;
    let log = replaced(&bench, || Ok(Outcome::done()), 3);
    replace(&bench).await;
    assert_eq!(
        log.take(),
        ["is 1", "was 1", "is 2", "is 2", "is 2", "is 2"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_is_reported_whatever_predicates_say() {
    let bench = Bench::new().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    let only = Predicate::labels("app=web".parse().unwrap());
    bench
        .operator
        .reconciler("web", &bench.widgets)
        .options(HandlerOptions::default().only(only))
        .on_deleted(move |cx: Reconcile<Widget>| {
            gone.add(format!("{} was", cx.key().name()));
            async { Ok(Outcome::done()) }
        })
        .register(move |cx: Reconcile<Widget>| {
            seen.add(format!("{} is", cx.key().name()));
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    let label = |value: Option<&str>| json!({"metadata": {"labels": {"app": value}}});
    bench.merge("a", label(Some("web"))).await;
    settle().await;
    bench.merge("a", label(None)).await;
    settle().await;
    assert_eq!(log.take(), ["a is", "a is"]);
    bench.delete("a").await;
    settle().await;
    assert_eq!(log.take(), ["a was"]);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_fails_panics_or_hangs_does_not_keep_the_successor_waiting() {
    for (end, retries) in [
        ("fails", None),
        ("fails", Some(2)),
        ("fails", Some(0)),
        ("panics", None),
        ("panics", Some(0)),
        ("hangs", None),
        ("hangs", Some(0)),
    ] {
        let bench = Bench::new().await;
        let log = Log::default();
        let (seen, ended) = (log.clone(), log.clone());
        let mut options = HandlerOptions::default().timeout(5 * SECOND);
        if let Some(retries) = retries {
            options = options.max_retries(retries);
        }
        bench
            .operator
            .reconciler("sizes", &bench.widgets)
            .options(options)
            .on_deleted(move |cx: Reconcile<Widget>| {
                ended.add(format!("was {}", cx.object().spec.size));
                async move {
                    match end {
                        "panics" => panic!("a defect"),
                        "hangs" => std::future::pending().await,
                        _ => Err(HandlerError::from("the bucket's API is down")),
                    }
                }
            })
            .register(move |cx: Reconcile<Widget>| {
                let size = cx.object().spec.size;
                seen.add(format!("is {size}"));
                async move {
                    if size == 1 {
                        time::sleep(SECOND).await;
                    }
                    Ok(Outcome::done())
                }
            })
            .unwrap();
        replace(&bench).await;
        let log = log.take();
        assert_eq!(log[..2], ["is 1", "was 1"], "{end} {retries:?}");
        let is_reconciled = log.contains(&"is 2".to_owned());
        assert!(is_reconciled, "{end} {retries:?}: {log:?}");
        let notifications = log.iter().filter(|line| *line == "was 1").count();
        match retries {
            // Its notification is retried forever.
            None => assert!(notifications > 5, "{end}: {log:?}"),
            Some(retries) => assert!(notifications <= retries as usize + 2, "{end}: {log:?}"),
        }
        bench.resize("a", 3).await;
        time::sleep(200 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_successor_is_called_again_when_it_asked_for_whatever_comes_of_the_end() {
    let bench = Bench::new().await;
    let log = Log::default();
    let seen = log.clone();
    bench
        .operator
        .reconciler("sizes", &bench.widgets)
        .options(HandlerOptions::default().max_retries(1))
        .on_deleted(|_| async { Err(HandlerError::from("the bucket's API is down")) })
        .register(move |cx: Reconcile<Widget>| {
            let size = cx.object().spec.size;
            seen.add(format!("is {size}"));
            async move {
                match size {
                    1 => time::sleep(SECOND).await,
                    _ => return Ok(Outcome::requeue_after(50 * SECOND)),
                }
                Ok(Outcome::done())
            }
        })
        .unwrap();
    replace(&bench).await;
    log.take();
    time::sleep(51 * SECOND).await;
    assert_eq!(log.take(), ["is 2"]);
}

/// As when an operator takes "not listed any more" for "deleted", and removes what the objects stand for.
#[tokio::test(start_paused = true)]
async fn unserved_kind_calls_neither_on_deleted_nor_reconcilers() {
    let bench = Bench::new().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    bench
        .operator
        .reconciler("sizes", &bench.widgets)
        .on_deleted(move |cx: Reconcile<Widget>| {
            gone.add(format!("{} is gone", cx.key().name()));
            async { Ok(Outcome::done()) }
        })
        .register(move |cx: Reconcile<Widget>| {
            seen.add(format!("{} is {}", cx.key().name(), cx.object().spec.size));
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    bench.create("b", 2).await;
    settle().await;
    log.take();
    let unserved = Action::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    let rule = Rule::new(unserved).resource("widgets");
    let rule = bench.cluster.faults().add(rule);
    bench.cluster.cut_watches();
    time::sleep(1200 * SECOND).await;
    let cache = bench.widgets.cache();
    assert!(cache.status().blind.is_some() && cache.len() == 2);
    assert_eq!(log.take(), [""; 0]);
    // What is enqueued is reconciled with the last state.
    bench.widgets.enqueue(&key("a"));
    settle().await;
    assert_eq!(log.take(), ["a is 1"]);
    let error = bench
        .operator
        .api::<Widget>()
        .get(&key("a"))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("Widget"), "{error}");
    bench.cluster.faults().remove(rule);
    bench.delete("b").await;
    time::sleep(10 * SECOND).await;
    assert_eq!(log.take(), ["b is gone"]);
    assert!(cache.is_current());
}
