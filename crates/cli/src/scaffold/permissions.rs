//! The permissions of a new project's operator.

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, Config};
use lariat_controller::{Outcome, SharedControllerFactory};
use lariat_core::{Gvk, ObjectKey, ResourceKind, Scope};
use lariat_lease::Lease;
use lariat_operator::{Operator, Rule};
use serde_json::json;

use super::options::Options;

/// Returns the ServiceAccount and role that the project's program prints.
pub(super) fn manifests(options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime does not start")?;
    runtime.block_on(async {
        // Nothing is sent: the resource kinds are given.
        let nowhere = Config::new("http://localhost".parse()?);
        let operator = operator(Client::try_from(nowhere)?, options)?;
        let name = options.name.as_str();
        let account = ObjectKey::namespaced(name, name);
        Ok(operator.manifests(name, &account).await?.to_string())
    })
}

/// Registers what `template/src/lib.rs.in` does.
fn operator(client: Client, options: &Options) -> Result<Operator> {
    let (name, kind, group) = (&options.name, options.kind(), &options.group);
    let lease = Lease::new(name.as_str()).namespace(name.as_str());
    let factory = SharedControllerFactory::builder(client)
        .leader_election(lease)
        .build();
    let operator = Operator::new(name.as_str(), &factory);
    let definition_name = format!("{}.{}", kind.plural(), group.as_str());
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": definition_name},
        "spec": {"group": "", "names": {"kind": "", "plural": ""}, "scope": "", "versions": []},
    }))?;
    operator.installs(definition);
    operator.needs(Rule::events());
    if options.webhook {
        webhooks(&operator, options);
    }
    operator.needs(Rule::on("authentication.k8s.io", "tokenreviews").verbs(["create"]));
    operator.needs(Rule::on("authorization.k8s.io", "subjectaccessreviews").verbs(["create"]));
    let resource = |gvk: Gvk, plural: &str| {
        factory.for_resource_kind(ResourceKind::new(gvk, plural, Scope::Namespaced))
    };
    let gvk = Gvk::new(group.as_str(), "v1alpha1", kind.as_str());
    let objects = resource(gvk, &kind.plural());
    let deployments = resource(Gvk::new("apps", "v1", "Deployment"), "deployments");
    operator
        .reconciler(&kind.singular(), &objects)
        .owns(&deployments)
        .applies(&deployments)
        .report_errors("Synced")
        .register(|_| async { Ok(Outcome::done()) })?;
    Ok(operator)
}

/// Declares what `template/add/webhooks.rs.in` does.
fn webhooks(operator: &Operator, options: &Options) {
    let name = options.name.as_str();
    let because = |rule: Rule| rule.because("the webhooks it serves");
    let configurations = format!("{name}.{}", options.group.as_str());
    for plural in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ] {
        let rule = || because(Rule::on("admissionregistration.k8s.io", plural));
        operator.needs(rule().named([&*configurations]).verbs(["get", "patch"]));
        operator.needs(rule().verbs(["create"]));
    }
    let secrets = || because(Rule::on("", "secrets")).in_namespaces([name]);
    let secret = format!("{name}-webhooks-tls");
    operator.needs(secrets().named([&*secret]).verbs(["get", "update"]));
    operator.needs(secrets().verbs(["create"]));
}
