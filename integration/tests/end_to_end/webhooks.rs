//! Webhooks that the API server calls, over loopback.
//!
//! An API server of `KUBECONFIG` has to run on this machine.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, PostParams};
use lariat::kube::core::Status;
use lariat::kube::{CustomResourceExt, Error};
use lariat::operator::{CrdOptions, ensure_crds};
use lariat::prelude::*;
use lariat::webhook::{
    Admission, Certificates, Conversion, Endpoint, FailurePolicy, Hook, Mutation, Operation,
    Policy, ReviewResult, StorageMigration, Verdict, WebhookServer, Webhooks,
};
use lariat_integration::{Env, in_namespace};
use serde_json::json;

mod v1 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "webhooks.demo.dev",
        version = "v1",
        kind = "Gauge",
        namespaced
    )]
    pub(super) struct GaugeSpec {
        pub(super) size: i64,
    }
}

mod v2 {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[kube(
        group = "webhooks.demo.dev",
        version = "v2",
        kind = "Gauge",
        namespaced
    )]
    pub(super) struct GaugeSpec {
        pub(super) width: i64,
    }
}

impl TryFrom<v1::Gauge> for v2::Gauge {
    type Error = String;

    fn try_from(old: v1::Gauge) -> Result<Self, String> {
        if old.spec.size == 13 {
            return Err("13 is no width".to_owned());
        }
        let spec = v2::GaugeSpec {
            width: old.spec.size,
        };
        Ok(Self {
            metadata: old.metadata,
            spec,
        })
    }
}

impl From<v2::Gauge> for v1::Gauge {
    fn from(new: v2::Gauge) -> Self {
        let spec = v1::GaugeSpec {
            size: new.spec.width,
        };
        Self {
            metadata: new.metadata,
            spec,
        }
    }
}

/// Judges a ConfigMap by its entry `is`.
async fn judged(request: Admission<ConfigMap>) -> ReviewResult<Verdict> {
    let config = match request.operation() {
        Operation::Delete => request.old()?,
        _ => request.object()?,
    };
    let is = config.and_then(|config| config.data.as_ref()?.get("is").cloned());
    Ok(match (is.as_deref(), request.operation()) {
        (Some("wrong"), _) => Verdict::deny("the ConfigMap is wrong").cause("data.is", "is wrong"),
        (Some("panic"), _) => panic!("as it was asked to"),
        (Some("slow"), _) => std::future::pending().await,
        (Some("dry"), _) if request.is_dry_run() => Verdict::deny("a dry run").code(409),
        (Some("kept"), Operation::Delete) => Verdict::deny("it is kept"),
        _ => Verdict::allow()
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

fn made(env: &Env) -> Certificates {
    Certificates::secret(&ObjectKey::namespaced(&env.namespace, "webhooks-tls"))
}

fn config(name: &str, is: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"is": is}}))
        .expect("a ConfigMap")
}

async fn create(env: &Env, name: &str, is: &str) -> Result<ConfigMap, Error> {
    let api: Api<ConfigMap> = env.api();
    api.create(&PostParams::default(), &config(name, is)).await
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Result<Status> {
    match outcome {
        Err(Error::Api(status)) => Ok(*status),
        other => anyhow::bail!("not refused: {other:?}"),
    }
}

/// Deletes the configurations, which no namespace takes with it.
async fn clean_up(env: &Env, server: &WebhookServer) -> Result<()> {
    server.shutdown().await;
    let name = env.group();
    for plural in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ] {
        delete(env, plural, &name).await?;
    }
    Ok(())
}

async fn delete(env: &Env, plural: &str, name: &str) -> Result<()> {
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{name}");
    let request = http::Request::delete(path).body(Vec::new())?;
    env.client.request_text(request).await?;
    Ok(())
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

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
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
async fn the_api_server_converts_through_the_hub() {
    in_namespace("conversion", async |env| {
        let definition = merged(v1::Gauge::crd(), v2::Gauge::crd());
        let name = "gauges.webhooks.demo.dev";
        ensure_crds(&env.client, &[definition], &CrdOptions::default()).await?;
        env.takes_away(name);
        let factory = env.factory().build();
        let conversion = Conversion::<v2::Gauge>::hub().version::<v1::Gauge>();
        let server = Webhooks::new(&env.group(), &factory)
            .convert(conversion)
            .endpoint(Endpoint::local())
            .serve("127.0.0.1:0", made(env))
            .await?;
        let old: Api<v1::Gauge> = Api::namespaced(env.client.clone(), &env.namespace);
        let new: Api<v2::Gauge> = Api::namespaced(env.client.clone(), &env.namespace);
        let params = PostParams::default();
        let mut gauge = v1::Gauge::new("a", v1::GaugeSpec { size: 3 });
        gauge.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        lariat_integration::eventually(async || {
            let status = refused(
                old.create(&params, &v1::Gauge::new("b", v1::GaugeSpec { size: 13 }))
                    .await,
            )?;
            ensure!(status.message.contains("13 is no width"), "{status:?}");
            Ok(())
        })
        .await;
        old.create(&params, &gauge).await?;
        let read = new.get("a").await?;
        ensure!(read.spec.width == 3 && read.metadata.labels == gauge.metadata.labels);
        new.create(&params, &v2::Gauge::new("c", v2::GaugeSpec { width: 4 }))
            .await?;
        let listed = old.list(&ListParams::default()).await?.items;
        let sizes: Vec<_> = listed.iter().map(|gauge| gauge.spec.size).collect();
        ensure!(sizes == [3, 4], "{sizes:?}");
        server.shutdown().await;
        // The objects are deleted with their definition, which asks for no conversion of its own.
        let dynamic: Api<DynamicObject> = Api::namespaced_with(
            env.client.clone(),
            &env.namespace,
            &ApiResource::erase::<v2::Gauge>(&()),
        );
        for name in ["a", "c"] {
            dynamic.delete(name, &DeleteParams::default()).await?;
        }
        Ok(())
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
            ensure!(status.message.contains("connection refused"), "{status:?}");
            Ok(())
        };
        let outcome = down.await;
        clean_up(env, &server).await?;
        outcome
    })
    .await;
}

/// Returns a policy for the namespace of the test alone.
fn small(env: &Env) -> Result<Policy> {
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": env.namespace}});
    let hook =
        Hook::<ConfigMap>::new("small").namespace_selector(serde_json::from_value(selector)?);
    let named = "object.metadata.name != 'no'";
    Ok(Policy::of(hook)
        .variable("entries", "has(object.data) ? size(object.data) : 0")
        .rule("variables.entries <= 1", "at most one entry")
        .rule_with(named, "'not ' + object.metadata.name"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_evaluates_policies_by_itself() {
    in_namespace("policies", async |env| {
        let factory = env.factory().build();
        let policy = small(env)?;
        let server = Webhooks::new(&env.group(), &factory)
            .policy(policy)
            .endpoint(Endpoint::local())
            .serve("127.0.0.1:0", made(env))
            .await?;
        // Also while the program is down.
        server.shutdown().await;
        let evaluated = async {
            lariat_integration::eventually(async || {
                let status = refused(
                    env.api::<ConfigMap>()
                        .create(&dry_run(), &config("no", "a"))
                        .await,
                )?;
                ensure!(
                    status.message.ends_with("denied request: not no"),
                    "{status:?}"
                );
                ensure!(status.code == 422, "{status:?}");
                Ok(())
            })
            .await;
            create(env, "one", "entry").await?;
            let mut two = config("two", "entries");
            two.data
                .get_or_insert_default()
                .insert("more".to_owned(), "b".to_owned());
            let status = refused(env.api::<ConfigMap>().create(&dry_run(), &two).await)?;
            ensure!(
                status
                    .message
                    .ends_with("denied request: at most one entry"),
                "{status:?}"
            );
            Ok(())
        };
        let outcome = evaluated.await;
        let name = format!("small.{}", env.group());
        for plural in [
            "validatingadmissionpolicybindings",
            "validatingadmissionpolicies",
        ] {
            delete(env, plural, &name).await?;
        }
        outcome
    })
    .await;
}

/// Installs a kind of two versions, of which the first is stored; returns the name of its CRD, and that version.
async fn two_versions(env: &Env) -> Result<(String, ApiResource)> {
    let group = env.group();
    let name = format!("dials.{group}");
    let version = |version: &str, is_stored: bool| {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "name": version, "served": true, "storage": is_stored,
            "schema": {"openAPIV3Schema": open},
        })
    };
    let definition = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "dials", "kind": "Dial"},
            "versions": [version("v1", true), version("v2", false)],
        },
    }))?;
    ensure_crds(&env.client, &[definition], &CrdOptions::default()).await?;
    env.takes_away(&name);
    let kind = ApiResource {
        api_version: format!("{group}/v1"),
        group,
        version: "v1".to_owned(),
        kind: "Dial".to_owned(),
        plural: "dials".to_owned(),
    };
    Ok((name, kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_rewrites_what_is_stored() {
    in_namespace("migration", async |env| {
        let (name, kind) = two_versions(env).await?;
        let definitions: Api<CustomResourceDefinition> = Api::all(env.client.clone());
        let dials: Api<DynamicObject> =
            Api::namespaced_with(env.client.clone(), &env.namespace, &kind);
        let mut before = Vec::new();
        for number in 0..5 {
            let dial = DynamicObject::new(&format!("d{number}"), &kind);
            before.push(dials.create(&PostParams::default(), &dial).await?);
        }
        let mut moved = definitions.get(&name).await?;
        moved.spec.versions[0].storage = false;
        moved.spec.versions[1].storage = true;
        definitions
            .replace(&name, &PostParams::default(), &moved)
            .await?;
        lariat_integration::eventually(async || {
            let status = definitions.get(&name).await?.status.context("no status")?;
            let stored = status.stored_versions.unwrap_or_default();
            ensure!(stored == ["v1", "v2"], "{stored:?}");
            Ok(())
        })
        .await;
        let migration = StorageMigration::new(&env.client, &name).page(2).rate(100);
        let report = migration.run().await?;
        ensure!((report.rewritten, report.skipped) == (5, 0), "{report:?}");
        ensure!(report.dropped == ["v1"], "{report:?}");
        let status = definitions.get(&name).await?.status.context("no status")?;
        ensure!(status.stored_versions == Some(vec!["v2".to_owned()]));
        for old in before {
            let name = old.metadata.name.clone().context("no name")?;
            let new = dials.get(&name).await?;
            ensure!(
                new.metadata.generation == old.metadata.generation,
                "{new:?}"
            );
            if !env.is_embedded() {
                // It was written: the bytes differ by the version.
                ensure!(
                    new.metadata.resource_version != old.metadata.resource_version,
                    "{new:?}"
                );
            }
        }
        Ok(())
    })
    .await;
}

/// Returns the definition of both versions, of which the second is stored.
fn merged(
    mut old: CustomResourceDefinition,
    new: CustomResourceDefinition,
) -> CustomResourceDefinition {
    old.spec.versions[0].storage = false;
    old.spec.versions.extend(new.spec.versions);
    old
}
