//! Handlers that judge and change objects.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::api::{DeleteParams, PostParams};
use lariat::prelude::*;
use lariat::webhook::{
    Admission, Decision, Endpoint, FailurePolicy, Hook, Mutation, Operation, ReviewResult, Webhooks,
};
use lariat_integration::{Env, in_namespace};
use serde_json::json;

use super::{clean_up, config, create, dry_run, made, refused};

/// Judges a ConfigMap by its entry `is`.
async fn judged(request: Admission<ConfigMap>) -> ReviewResult<Decision> {
    let config = match request.operation() {
        Operation::Delete => request.old()?,
        _ => request.object()?,
    };
    let is = config.and_then(|config| config.data.as_ref()?.get("is").cloned());
    Ok(match (is.as_deref(), request.operation()) {
        (Some("wrong"), _) => Decision::deny("the ConfigMap is wrong").cause("data.is", "is wrong"),
        (Some("panic"), _) => panic!("as it was asked to"),
        (Some("slow"), _) => std::future::pending().await,
        (Some("dry"), _) if request.is_dry_run() => Decision::deny("a dry run").code(409),
        (Some("kept"), Operation::Delete) => Decision::deny("it is kept"),
        _ => Decision::allow()
            .warn("it is judged")
            .annotate("judged", "true"),
    })
}

async fn labelled(
    _: Admission<ConfigMap>,
    mut config: ConfigMap,
) -> ReviewResult<Mutation<ConfigMap>> {
    let labels = config.metadata.labels.get_or_insert_default();
    labels.insert("demo.dev/by".to_owned(), "webhook".to_owned());
    Ok(Mutation::to(config))
}

/// Returns webhooks for the namespace of the test alone.
fn webhooks(env: &Env, factory: &SharedControllerFactory, policy: FailurePolicy) -> Webhooks {
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": env.namespace}});
    let selector = || serde_json::from_value(selector.clone()).expect("a selector");
    let all = [Operation::Create, Operation::Update, Operation::Delete];
    let judging = Hook::new("judged")
        .operations(all)
        .failure_policy(policy)
        .timeout(Duration::from_secs(1))
        .namespace_selector(selector())
        .match_condition(
            "has-data",
            "request.operation == 'DELETE' || has(object.data)",
        );
    Webhooks::new(&env.group(), factory)
        .validate(judging, judged)
        .mutate(
            Hook::new("labelled").namespace_selector(selector()),
            labelled,
        )
        .endpoint(Endpoint::local())
}

/// Waits until the API server calls the webhooks: it learns of a configuration by a watch.
async fn until_called(env: &Env) {
    lariat_integration::eventually(async || {
        let refused = refused(
            env.api::<ConfigMap>()
                .create(&dry_run(), &config("probe", "dry"))
                .await,
        )?;
        ensure!(refused.code == 409, "{refused:?}");
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_calls_handlers_and_heeds_them() {
    in_namespace("webhooks", async |env| {
        let factory = env.factory().build();
        let webhooks = webhooks(env, &factory, FailurePolicy::Fail);
        let server = webhooks.serve("127.0.0.1:0", made(env)).await?;
        until_called(env).await;
        let called = async {
            let created = create(env, "good", "good").await?;
            let labels = created.metadata.labels.context("no labels")?;
            ensure!(labels["demo.dev/by"] == "webhook");
            let status = refused(create(env, "bad", "wrong").await)?;
            ensure!(
                (status.code, &*status.reason) == (422, "Invalid"),
                "{status:?}"
            );
            let name = env.group();
            let expected = format!(
                "admission webhook \"judged.{name}\" denied the request: the ConfigMap is wrong"
            );
            ensure!(status.message == expected, "{status:?}");
            let causes = status.details.context("no details")?.causes;
            ensure!(causes[0].field == "data.is" && causes[0].message == "is wrong");
            let status = refused(create(env, "bad", "panic").await)?;
            ensure!(status.code == 500, "{status:?}");
            let expected = format!("the webhook judged.{name} failed: it panicked");
            ensure!(status.message.contains(&expected), "{status:?}");
            let status = refused(create(env, "bad", "slow").await)?;
            ensure!(
                status.message.contains("it timed out after 900ms"),
                "{status:?}"
            );
            create(env, "kept", "kept").await?;
            let delete = env
                .api::<ConfigMap>()
                .delete("kept", &DeleteParams::default())
                .await;
            let status = refused(delete)?;
            ensure!(
                (status.code, &*status.reason) == (403, "Forbidden"),
                "{status:?}"
            );
            // The match condition spares the call.
            let empty = serde_json::from_value(json!({"metadata": {"name": "empty"}}))?;
            env.api::<ConfigMap>()
                .create(&PostParams::default(), &empty)
                .await?;
            warned(env).await
        };
        let outcome = called.await;
        clean_up(env, &server).await?;
        outcome
    })
    .await;
}

/// Checks that a client gets the warning of a handler.
async fn warned(env: &Env) -> Result<()> {
    let path = format!("/api/v1/namespaces/{}/configmaps", env.namespace);
    let body = serde_json::to_vec(&config("warned", "good"))?;
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(lariat::kube::client::Body::from(body))?;
    let response = env.client.send(request).await?;
    let warning = response.headers().get("warning").context("no warning")?;
    ensure!(warning.to_str()?.contains("it is judged"), "{warning:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_is_ignored_if_the_policy_says_so() {
    in_namespace("ignored", async |env| {
        let factory = env.factory().build();
        let webhooks = webhooks(env, &factory, FailurePolicy::Ignore);
        let server = webhooks.serve("127.0.0.1:0", made(env)).await?;
        until_called(env).await;
        let called = async {
            create(env, "panicking", "panic").await?;
            create(env, "slow", "slow").await?;
            // A denial is no failure.
            refused(create(env, "bad", "wrong").await)?;
            Ok(())
        };
        let outcome = called.await;
        clean_up(env, &server).await?;
        outcome
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_while_certificates_rotate() {
    in_namespace("rotation", async |env| {
        let factory = env.factory().build();
        let certificates = made(env)
            .validity(Duration::from_secs(9))
            .overlap(Duration::from_secs(2))
            .period(Duration::from_millis(50));
        let webhooks = webhooks(env, &factory, FailurePolicy::Fail);
        let server = webhooks.serve("127.0.0.1:0", certificates).await?;
        until_called(env).await;
        let first = server.authority().context("no authority")?;
        let rotated = async {
            loop {
                let status = refused(
                    env.api::<ConfigMap>()
                        .create(&dry_run(), &config("a", "dry"))
                        .await,
                )?;
                ensure!(status.code == 409, "{status:?}");
                let present = server.authority().context("no authority")?;
                if !present.contains(&first) {
                    return Ok(());
                }
            }
        };
        let outcome = rotated.await;
        clean_up(env, &server).await?;
        outcome
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_down_is_what_the_failure_policy_says() {
    in_namespace("down", async |env| {
        let factory = env.factory().build();
        let webhooks = webhooks(env, &factory, FailurePolicy::Fail);
        let server = webhooks.serve("127.0.0.1:0", made(env)).await?;
        until_called(env).await;
        server.shutdown().await;
        let down = async {
            let status = refused(create(env, "a", "good").await)?;
            ensure!(
                (status.code, &*status.reason) == (500, "InternalError"),
                "{status:?}"
            );
            // A server that still has a connection to it finds that broken first.
            let mut reasons = ["connection refused", "broken pipe", "connection reset"].into_iter();
            let is_down = reasons.any(|reason| status.message.contains(reason));
            ensure!(is_down, "{status:?}");
            Ok(())
        };
        let outcome = down.await;
        clean_up(env, &server).await?;
        outcome
    })
    .await;
}
