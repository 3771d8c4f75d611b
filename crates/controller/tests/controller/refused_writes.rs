//! Writes that the API server refuses in any state: of the handler's own object, and of other objects.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{
    Context, HandlerError, HandlerOptions, HandlerResult, Outcome, RetrySlowly,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time;

use crate::bench::{Bench, SECOND};

/// The time between two slow retries.
const SLOW: Duration = Duration::from_secs(300);

/// The objects that a handler writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// Its own one.
    Own,
    /// A Secret.
    Other,
    /// Its own one, on a task of its own.
    Spawned,
    /// A Secret that is accepted, then its own one.
    OtherThenOwn,
    /// Its own one, then a Secret on a task of its own.
    OwnThenSpawnedOther,
    /// A ConfigMap of its own name in another namespace.
    Namesake,
}

async fn write(cx: Context<ConfigMap>, writes: Writes) -> HandlerResult {
    if cx.raw().is_none() {
        return Ok(Outcome::done());
    }
    let client = cx.client();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = |name: &str| -> Secret {
        serde_json::from_value(json!({"metadata": {"name": name}})).expect("it is one")
    };
    let own: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let name = cx.key().name().to_owned();
    let patch = Patch::Merge(json!({"data": {"written": "x"}}));
    let params = PatchParams::default();
    match writes {
        Writes::Own => drop(own.patch(&name, &params, &patch).await?),
        Writes::Other => drop(
            secrets
                .create(&PostParams::default(), &secret("too-large"))
                .await?,
        ),
        Writes::Spawned => {
            let mut tasks = JoinSet::new();
            tasks.spawn(async move { own.patch(&name, &params, &patch).await });
            while let Some(written) = tasks.join_next().await {
                written??;
            }
        }
        Writes::OtherThenOwn => {
            let accepted = Patch::Apply(
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fits"}}),
            );
            secrets
                .patch("fits", &PatchParams::apply("test"), &accepted)
                .await?;
            drop(own.patch(&name, &params, &patch).await?);
        }
        Writes::OwnThenSpawnedOther => {
            // A replacement without an effect, which no fault refuses.
            let object = own.get(&name).await?;
            own.replace(&name, &PostParams::default(), &object).await?;
            let too_large = secret("too-large");
            let mut tasks = JoinSet::new();
            tasks.spawn(async move { secrets.create(&PostParams::default(), &too_large).await });
            while let Some(written) = tasks.join_next().await {
                written??;
            }
        }
        Writes::Namesake => {
            let others: Api<ConfigMap> = Api::namespaced(client, "kube-system");
            drop(others.patch(&name, &params, &patch).await?);
        }
    }
    Ok(Outcome::done())
}

/// Runs a handler whose writes are refused as too large; returns the number of its calls in three slow periods.
async fn calls(writes: Writes, options: HandlerOptions) -> (Bench, u64) {
    let bench = Bench::new().await;
    bench.create("a").await;
    for (resource, verb) in [("secrets", "create"), ("configmaps", "patch")] {
        let refusal = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE);
        let rule = Rule::new(Action::Refuse(refusal)).resource(resource);
        bench.cluster.faults().add(rule.verb(verb));
    }
    let handler = options.handler(move |cx: Context<ConfigMap>| write(cx, writes));
    bench
        .config_maps
        .register_handler("writes", handler)
        .expect("registered");
    bench.start().await;
    time::sleep(3 * SLOW + 10 * SECOND).await;
    let calls = bench.status().handlers[0].calls;
    (bench, calls)
}

#[tokio::test(start_paused = true)]
async fn refused_write_of_the_own_object_is_given_up() {
    let (bench, calls) = calls(Writes::Own, HandlerOptions::default()).await;
    let handler = bench.status().handlers.remove(0);
    assert_eq!((calls, handler.failing, handler.given_up), (1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn refused_write_of_another_object_is_retried_slowly() {
    for writes in [
        Writes::Other,
        Writes::Spawned,
        Writes::OtherThenOwn,
        Writes::OwnThenSpawnedOther,
        Writes::Namesake,
    ] {
        let (bench, calls) = calls(writes, HandlerOptions::default()).await;
        let handler = bench.status().handlers.remove(0);
        assert_eq!(
            (calls, handler.failing, handler.given_up),
            (4, 1, 0),
            "{writes:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn slow_retry_comes_with_the_period_of_the_handler() {
    let every_minute = HandlerOptions::default().requeue_final(|_| Some(60 * SECOND));
    let (_, calls) = calls(Writes::Other, every_minute).await;
    assert_eq!(calls, 16);
    let seldom = HandlerOptions::default().requeue_final(|_| Some(2 * SLOW));
    let (_, calls) = self::calls(Writes::Other, seldom).await;
    assert_eq!(calls, 4);
}

/// Returns the number of calls in a slow period of a handler that returns an error after a write of its own object.
async fn calls_after(error: impl Fn() -> HandlerError + Clone + Send + Sync + 'static) -> u64 {
    let bench = Bench::new().await;
    bench.create("a").await;
    let handler = move |cx: Context<ConfigMap>| {
        let error = error.clone();
        async move {
            let own: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
            let patch = Patch::Merge(json!({"data": {"written": "x"}}));
            own.patch(cx.key().name(), &PatchParams::default(), &patch)
                .await?;
            Err::<Outcome, _>(error())
        }
    };
    let quiet = HandlerOptions::default().only(lariat_controller::Predicate::new(|change| {
        matches!(change, lariat_cache::Change::Added { .. })
    }));
    bench
        .config_maps
        .register_handler("writes", quiet.handler(handler))
        .expect("registered");
    bench.start().await;
    time::sleep(SLOW + 10 * SECOND).await;
    bench.status().handlers[0].calls
}

fn answered(status: &Value) -> HandlerError {
    let status: kube::core::Status =
        serde_json::from_value(status.clone()).expect("it is a Status");
    kube::Error::Api(status.boxed()).into()
}

#[tokio::test(start_paused = true)]
async fn refusals_of_etcd_are_not_retried() {
    for message in [
        "etcdserver: request is too large",
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097502 vs. 2097152)",
    ] {
        let status = json!({"status": "Failure", "code": 500, "message": message});
        assert_eq!(calls_after(move || answered(&status)).await, 1, "{message}");
    }
    let timeout =
        json!({"status": "Failure", "code": 500, "message": "etcdserver: request timed out"});
    assert!(calls_after(move || answered(&timeout)).await > 5);
}

#[tokio::test(start_paused = true)]
async fn invalid_object_is_given_up_only_if_it_is_the_own_one() {
    let invalid = |kind: &str, name: &str| {
        let cause = json!({"reason": "FieldValueRequired", "field": "data"});
        json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "data: Required value",
            "details": {"kind": kind, "name": name, "causes": [cause]}})
    };
    let own = invalid("ConfigMap", "a");
    assert_eq!(calls_after(move || answered(&own)).await, 1);
    for other in [invalid("ConfigMap", "b"), invalid("Secret", "a")] {
        assert_eq!(calls_after(move || answered(&other)).await, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn error_of_a_handler_can_ask_for_slow_retries() {
    let error = || RetrySlowly::because("the quota is used up").into();
    assert_eq!(calls_after(error).await, 2);
    let wrapped = || {
        anyhow::Error::from(RetrySlowly::because("used up"))
            .context("cannot book")
            .into()
    };
    assert_eq!(calls_after(wrapped).await, 2);
}
