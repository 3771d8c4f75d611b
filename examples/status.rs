//! Status and conditions, as `kubectl wait --for=condition=Ready` expects them.
//!
//! The status is written only if it differs. The condition has the observed generation, and reports errors.
//!
//! Run: `cargo run --example status` (on an embedded cluster, in this process), or with `KUBECONFIG=…` on yours.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::wait_for;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat::kube::{CustomResource, CustomResourceExt};
use lariat::operator::ConditionUpdate;
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.dev",
    version = "v1",
    kind = "Tenant",
    namespaced,
    status = "TenantStatus"
)]
struct TenantSpec {
    plan: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
struct TenantStatus {
    seats: Option<u32>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

async fn reconcile(cx: Reconcile<Tenant>) -> HandlerResult {
    let seats = match &*cx.object().spec.plan {
        "free" => 3,
        "team" => 50,
        // The condition becomes False, with this message, and the call is retried.
        other => return Err(format!("there is no plan {other:?}").into()),
    };
    // Sends a request only if something differs. A change of the status alone does not call the reconciler.
    cx.update_status(|status: &mut TenantStatus| status.seats = Some(seats))
        .await?;
    let ready = ConditionUpdate::is_true("Ready", "Provisioned").message(format!("{seats} seats"));
    cx.set_condition(&ready).await?;
    Ok(Outcome::done())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let builder = SharedControllerFactory::builder(sandbox.client());
    let factory = builder.default_options(sandbox.options()).build();
    let operator = Operator::new("tenants", &factory);
    operator.installs(Tenant::crd());
    operator
        .reconciler("tenants", &factory.for_object::<Tenant>())
        .options(HandlerOptions::default().only(Predicate::generation_changed()))
        .report_errors("Ready")
        .register(reconcile)?;
    operator.start(2).await?;

    let tenants: Api<Tenant> = Api::default_namespaced(sandbox.client());
    let params = PatchParams::apply("you");
    for (generation, plan) in [(1, "free"), (2, "gold"), (3, "team")] {
        let tenant = json!({
            "apiVersion": "demo.dev/v1", "kind": "Tenant",
            "metadata": {"name": "acme"}, "spec": {"plan": plan},
        });
        tenants
            .patch("acme", &params, &Patch::Apply(tenant))
            .await?;
        let observed = |tenant: &Tenant| ready(tenant)?.observed_generation;
        let is_observed = |tenant: &Tenant| observed(tenant) == Some(generation);
        let tenant = wait_for(&tenants, "acme", is_observed).await?;
        if let Some(ready) = ready(&tenant) {
            let (status, reason, message) = (&ready.status, &ready.reason, &ready.message);
            println!("plan {plan}: Ready={status} {reason}: {message}");
        }
    }

    operator.stop().await?;
    let crds: Api<CustomResourceDefinition> = Api::all(sandbox.client());
    crds.delete(Tenant::crd_name(), &DeleteParams::default())
        .await?;
    Ok(sandbox.close().await?)
}

/// Returns the only condition.
fn ready(tenant: &Tenant) -> Option<&Condition> {
    tenant.status.as_ref()?.conditions.first()
}
