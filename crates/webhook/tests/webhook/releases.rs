//! Tests of the removal of an earlier release's configurations.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use lariat_cluster::RecordedRequest;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_webhook::{
    Admission, Certificates, Decision, Endpoint, Hook, Policy, WebhookServer, Webhooks,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::support::{Folder, Program, Widget, calm, issue, raised, until};

/// Serves webhooks, and waits until their configurations are applied and those before them removed.
async fn serve(webhooks: Webhooks) -> WebhookServer {
    let server = begin(webhooks).await;
    assert!(server.applied().await);
    server
}

async fn begin(webhooks: Webhooks) -> WebhookServer {
    let folder = Folder::new();
    folder.mount(&issue());
    let webhooks = webhooks.endpoint(Endpoint::local());
    let certificates = Certificates::directory(folder.path());
    webhooks.serve("127.0.0.1:0", certificates).await.unwrap()
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
    let mut names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}

/// Waits until the objects of a kind have these names.
async fn wait_for<K>(client: &Client, expected: &[&str])
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug,
{
    until("others exist", async || {
        (names::<K>(client).await == expected).then_some(())
    })
    .await;
}

/// A server whose certificate can be replaced.
struct Replica {
    server: WebhookServer,
    folder: Folder,
}

impl Replica {
    async fn serve(webhooks: Webhooks) -> Self {
        let folder = Folder::new();
        folder.mount(&issue());
        let webhooks = webhooks.endpoint(Endpoint::local());
        let certificates = Certificates::directory(folder.path()).period(Duration::from_millis(10));
        let server = webhooks.serve("127.0.0.1:0", certificates).await.unwrap();
        assert!(server.applied().await);
        Self { server, folder }
    }

    /// Replaces the certificate, and waits until the configurations were applied with it.
    async fn apply_again(&self, program: &Program) {
        let before = self.server.authority();
        self.folder.mount(&issue());
        let api: Api<MutatingWebhookConfiguration> = Api::all(program.cluster.client());
        until("the configuration has the former certificate", async || {
            let authority = self
                .server
                .authority()
                .filter(|_| self.server.authority() != before)?;
            let found = api.get("widgets.demo.dev").await.unwrap();
            let webhooks = found.webhooks.unwrap_or_default();
            let bundle = webhooks[0].client_config.ca_bundle.clone()?;
            (bundle.0 == authority.as_bytes()).then_some(())
        })
        .await;
    }
}

/// Returns the record on the configuration of mutating webhooks.
async fn recorded(client: &Client) -> String {
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let found = api.get("widgets.demo.dev").await.unwrap();
    found.annotations()["lariat.dev/applied"].clone()
}

#[tokio::test]
async fn a_release_that_drops_its_last_validating_hook_and_a_policy_removes_both() {
    let program = Program::new().await;
    let client = program.cluster.client();
    let server = serve(first(&program)).await;
    server.shutdown().await;
    let second = red(program.webhooks()).policy(policy("small"));
    let server = serve(second).await;
    wait_for::<ValidatingWebhookConfiguration>(&client, &[]).await;
    wait_for::<MutatingWebhookConfiguration>(&client, &["widgets.demo.dev"]).await;
    wait_for::<ValidatingAdmissionPolicy>(&client, &["small.widgets.demo.dev"]).await;
    wait_for::<ValidatingAdmissionPolicyBinding>(&client, &["small.widgets.demo.dev"]).await;
    server.shutdown().await;
    // A release without any webhook leaves nothing.
    let _server = serve(program.webhooks()).await;
    wait_for::<MutatingWebhookConfiguration>(&client, &[]).await;
    wait_for::<ValidatingAdmissionPolicyBinding>(&client, &[]).await;
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
    let _other = serve(other).await;
    // Of the name, but without the label; and with the label, but of another name.
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let label = json!({"lariat.dev/webhooks": "widgets.demo.dev"});
    for (name, labels) in [("widgets.demo.dev", Value::Null), ("copy", label)] {
        let theirs = json!({"metadata": {"name": name, "labels": labels}, "webhooks": []});
        let theirs = serde_json::from_value(theirs).unwrap();
        api.create(&PostParams::default(), &theirs).await.unwrap();
    }
    let replica = Replica::serve(red(program.webhooks())).await;
    // Unwanted policies are removed in between.
    replica.apply_again(&program).await;
    let expected = ["copy", "more.widgets.demo.dev", "widgets.demo.dev"];
    wait_for::<ValidatingWebhookConfiguration>(&client, &expected).await;
    wait_for::<ValidatingAdmissionPolicy>(&client, &["small.more.widgets.demo.dev"]).await;
}

#[tokio::test]
async fn failed_removal_is_an_alert_of_served_webhooks() {
    let program = Program::new().await;
    let client = program.cluster.client();
    let server = serve(first(&program)).await;
    server.shutdown().await;
    let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    let rule = Rule::new(refused).resource("validatingadmissionpolicies");
    let rule = program.cluster.faults().add(rule.verb("delete"));
    let server = serve(red(program.webhooks())).await;
    let health = server.health();
    let reason = raised(&health, "pruning").await;
    let expected = "cannot remove the ValidatingAdmissionPolicy new.widgets.demo.dev of an earlier release: delete \
                    it, or allow this program to get and delete it";
    assert!(reason.starts_with(expected), "{reason}");
    assert_eq!(health.check(), Ok(()));
    // The others are removed.
    wait_for::<ValidatingWebhookConfiguration>(&client, &[]).await;
    wait_for::<ValidatingAdmissionPolicyBinding>(&client, &[]).await;
    program.cluster.faults().remove(rule);
    calm(&health).await;
    wait_for::<ValidatingAdmissionPolicy>(&client, &[]).await;
}

#[tokio::test]
async fn kinds_that_were_never_used_need_no_permission() {
    let program = Program::new().await;
    let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    let unused = |request: &RecordedRequest| {
        request.resource.starts_with("validating") || request.verb == "list"
    };
    program
        .cluster
        .faults()
        .add(Rule::new(refused).when(unused));
    let server = serve(red(program.webhooks())).await;
    assert_eq!(server.health().alerts(), []);
    let attempts = program.cluster.journal().select().verb("delete").count();
    assert_eq!(attempts, 0);
}

#[tokio::test]
async fn recorded_configuration_that_may_not_be_read_is_an_alert() {
    let program = Program::new().await;
    let client = program.cluster.client();
    let server = serve(first(&program)).await;
    server.shutdown().await;
    let refused = Action::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    let rule = Rule::new(refused).resource("validatingwebhookconfigurations");
    let rule = program.cluster.faults().add(rule.verb("get"));
    // Its paths are not served any more.
    let server = serve(red(program.webhooks())).await;
    let health = server.health();
    let reason = raised(&health, "pruning").await;
    let expected =
        "cannot remove the ValidatingWebhookConfiguration widgets.demo.dev of an earlier release";
    assert!(reason.starts_with(expected), "{reason}");
    program.cluster.faults().remove(rule);
    calm(&health).await;
    wait_for::<ValidatingWebhookConfiguration>(&client, &[]).await;
}

#[tokio::test]
async fn declared_policy_is_removed_without_record() {
    let program = Program::new().await;
    let client = program.cluster.client();
    let server = serve(program.webhooks().policy(policy("small"))).await;
    server.shutdown().await;
    // Nothing that this release wants has the record.
    let _server = serve(red(program.webhooks()).remove_policy("small")).await;
    wait_for::<ValidatingAdmissionPolicyBinding>(&client, &[]).await;
    wait_for::<ValidatingAdmissionPolicy>(&client, &[]).await;
}

#[tokio::test]
async fn policy_that_an_older_replica_applies_again_stays_recorded() {
    let program = Program::new().await;
    let client = program.cluster.client();
    let older = Replica::serve(first(&program)).await;
    let newer = Replica::serve(red(program.webhooks()).policy(policy("small"))).await;
    wait_for::<ValidatingAdmissionPolicy>(&client, &["small.widgets.demo.dev"]).await;
    // Removed policies are not recorded any more.
    newer.apply_again(&program).await;
    assert_eq!(recorded(&client).await, "mutating small.widgets.demo.dev");
    older.apply_again(&program).await;
    let refused = Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let rule = Rule::new(refused).verb("delete");
    program.cluster.faults().add(rule);
    newer.apply_again(&program).await;
    raised(&newer.server.health(), "pruning").await;
    assert_eq!(
        recorded(&client).await,
        "mutating new.widgets.demo.dev small.widgets.demo.dev validating"
    );
}
