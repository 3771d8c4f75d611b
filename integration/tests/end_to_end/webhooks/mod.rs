//! Webhooks that the API server calls, over loopback.
//!
//! An API server of `KUBECONFIG` has to run on this machine.

mod admission;
mod conversion;
mod policies;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::kube::Error;
use lariat::kube::api::{Api, PostParams};
use lariat::kube::core::Status;
use lariat::prelude::*;
use lariat::webhook::{Certificates, WebhookServer};
use lariat_integration::Env;
use serde_json::json;

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

fn dry_run() -> PostParams {
    PostParams {
        dry_run: true,
        ..PostParams::default()
    }
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
