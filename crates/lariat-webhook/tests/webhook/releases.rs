//! Tests of the removal of an earlier release's configurations.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_webhook::{
    Admission, Certificates, Decision, Endpoint, Hook, Policy, WebhookError, WebhookServer,
    Webhooks,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{Folder, Program, Widget, issue};

async fn serve(webhooks: Webhooks) -> Result<WebhookServer, WebhookError> {
    let folder = Folder::new();
    folder.mount(&issue());
    let webhooks = webhooks.endpoint(Endpoint::local());
    let certificates = Certificates::directory(folder.path());
    webhooks.serve("127.0.0.1:0", certificates).await
}

fn policy(name: &str) -> Policy {
    Policy::of(Hook::<Widget>::new(name)).rule("object.spec.size <= 5", "too large")
}

fn red(webhooks: Webhooks) -> Webhooks {
    webhooks.defaults(Hook::new("red"), |_: &mut Widget| {})
}

/// The first release: both roles and two policies.
fn first(program: &Program) -> Webhooks {
    let quota = async |_: Admission<Widget>| Ok(Decision::allow());
    red(program.webhooks())
        .validate(Hook::new("quota"), quota)
        .policy(policy("small"))
        .policy(policy("new"))
}

async fn names<K>(client: &Client) -> Vec<String>
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug,
{
    let all: Api<K> = Api::all(client.clone());
    let all = all.list(&ListParams::default()).await.unwrap();
    all.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test]
async fn a_release_that_drops_its_last_validating_hook_and_a_policy_removes_both() {
    let program = Program::new().await;
    let client = program.cluster.client();
    let server = serve(first(&program)).await.unwrap();
    server.shutdown().await;
    let second = red(program.webhooks()).policy(policy("small"));
    let server = serve(second).await.unwrap();
    let none = [""; 0];
    let validating = names::<ValidatingWebhookConfiguration>(&client).await;
    assert_eq!(validating, none);
    let mutating = names::<MutatingWebhookConfiguration>(&client).await;
    assert_eq!(mutating, ["widgets.demo.dev"]);
    let policies = names::<ValidatingAdmissionPolicy>(&client).await;
    assert_eq!(policies, ["small.widgets.demo.dev"]);
    let bindings = names::<ValidatingAdmissionPolicyBinding>(&client).await;
    assert_eq!(bindings, ["small.widgets.demo.dev"]);
    server.shutdown().await;
    // A release without any webhook leaves nothing.
    let _server = serve(program.webhooks()).await.unwrap();
    let mutating = names::<MutatingWebhookConfiguration>(&client).await;
    assert_eq!(mutating, none);
    let bindings = names::<ValidatingAdmissionPolicyBinding>(&client).await;
    assert_eq!(bindings, none);
}

#[tokio::test]
async fn what_others_or_other_webhooks_have_applied_is_not_removed() {
    let program = Program::new().await;
    let client = program.cluster.client();
    let any = async |_: Admission<Widget>| Ok(Decision::allow());
    let other = Webhooks::new("more.widgets.demo.dev", &program.factory);
    let other = other
        .validate(Hook::new("quota"), any)
        .policy(policy("small"));
    let _other = serve(other).await.unwrap();
    // Of the name, but without the label; and with the label, but of another name.
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let label = json!({"lariat.dev/webhooks": "widgets.demo.dev"});
    for (name, labels) in [("widgets.demo.dev", Value::Null), ("copy", label)] {
        let theirs = json!({"metadata": {"name": name, "labels": labels}, "webhooks": []});
        let theirs = serde_json::from_value(theirs).unwrap();
        api.create(&PostParams::default(), &theirs).await.unwrap();
    }
    let _server = serve(red(program.webhooks())).await.unwrap();
    let mut validating = names::<ValidatingWebhookConfiguration>(&client).await;
    validating.sort();
    let expected = ["copy", "more.widgets.demo.dev", "widgets.demo.dev"];
    assert_eq!(validating, expected);
    let policies = names::<ValidatingAdmissionPolicy>(&client).await;
    assert_eq!(policies, ["small.more.widgets.demo.dev"]);
}

#[tokio::test]
async fn a_policy_that_cannot_be_removed_is_an_error_with_the_webhooks() {
    let program = Program::new().await;
    let server = serve(first(&program)).await.unwrap();
    server.shutdown().await;
    let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    program.cluster.faults().add(
        Rule::new(refused)
            .verb("delete")
            .resource("validatingadmissionpolicies"),
    );
    let error = serve(red(program.webhooks())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot remove an unwanted ValidatingAdmissionPolicy of the webhooks widgets.demo.dev"
    );
}
