//! Tests of configurations: what is applied, when, and with which permissions.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, CustomResourceExt};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::namespace;
use lariat_core::ObjectKey;
use lariat_operator::{CrdOptions, Operator, ensure_crds};
use lariat_webhook::{
    Admission, Certificates, Conversion, Decision, Endpoint, FailurePolicy, Hook, MatchPolicy,
    Operation, Policy, SideEffects, WebhookServer, Webhooks,
};
use serde_json::{Value, json};

use crate::support::{Caller, Folder, Program, Widget, calm, get, issue, issue_for, raised, until};

fn webhooks(program: &Program) -> Webhooks {
    let quota = Hook::new("quota")
        .operations([Operation::Create, Operation::Delete])
        .failure_policy(FailurePolicy::Ignore)
        .side_effects(SideEffects::NoneOnDryRun)
        .match_policy(MatchPolicy::Exact)
        .timeout(Duration::from_millis(2_500))
        .namespace_selector(serde_json::from_value(json!({"matchLabels": {"a": "b"}})).unwrap())
        .object_selector(serde_json::from_value(json!({"matchLabels": {"c": "d"}})).unwrap())
        .match_condition("not-eve", "request.userInfo.username != 'eve'");
    program
        .webhooks()
        .validate(quota, async |_: Admission<Widget>| Ok(Decision::allow()))
        .defaults(Hook::new("red").reinvoke(), |_: &mut Widget| {})
        .convert(Conversion::<Widget>::hub())
        .policy(Policy::of(Hook::<Widget>::new("small")).rule("object.spec.size <= 5", "too large"))
}

fn service() -> Endpoint {
    Endpoint::service(&ObjectKey::namespaced("demo", "hooks"))
        .port(8443)
        .selects("app", "widgets")
        .target_port(9443)
}

async fn install(program: &Program) {
    let client = program.cluster.client();
    namespace("demo").create(&client).await.unwrap();
    ensure_crds(&client, &[Widget::crd()], &CrdOptions::default())
        .await
        .unwrap();
}

/// Serves all webhooks, and returns the client configuration of one path.
async fn served(program: &Program) -> (WebhookServer, impl Fn(&str) -> Value) {
    install(program).await;
    let folder = Folder::new();
    let issued = issue();
    folder.mount(&issued);
    let server = webhooks(program)
        .endpoint(service())
        .annotate("demo.dev/by", "tests")
        .serve("127.0.0.1:0", Certificates::directory(folder.path()))
        .await;
    let bundle = STANDARD.encode(&issued.authority);
    let reached = move |path: &str| {
        json!({
            "caBundle": bundle,
            "service": {"namespace": "demo", "name": "hooks", "port": 8443, "path": path},
        })
    };
    let server = server.unwrap();
    assert!(server.applied().await);
    (server, reached)
}

#[tokio::test]
async fn configurations_of_both_roles_are_applied_once_the_server_listens() {
    let program = Program::new().await;
    let (_server, reached) = served(&program).await;
    let client = program.cluster.client();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let applied = validating.get("widgets.demo.dev").await.unwrap();
    assert_eq!(
        applied.metadata.annotations.as_ref().unwrap()["demo.dev/by"],
        "tests"
    );
    assert_eq!(
        serde_json::to_value(applied.webhooks).unwrap(),
        json!([{
            "name": "quota.widgets.demo.dev",
            "admissionReviewVersions": ["v1"],
            "clientConfig": reached("/validate/quota"),
            "failurePolicy": "Ignore", "matchPolicy": "Exact", "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 3,
            "namespaceSelector": {"matchLabels": {"a": "b"}},
            "objectSelector": {"matchLabels": {"c": "d"}},
            "matchConditions": [{"name": "not-eve", "expression": "request.userInfo.username != 'eve'"}],
            "rules": [{
                "apiGroups": ["demo.dev"], "apiVersions": ["v1"], "resources": ["widgets"],
                "operations": ["CREATE", "DELETE"], "scope": "Namespaced",
            }],
        }])
    );
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let applied = mutating
        .get("widgets.demo.dev")
        .await
        .unwrap()
        .webhooks
        .unwrap()
        .remove(0);
    assert_eq!(applied.reinvocation_policy.as_deref(), Some("IfNeeded"));
    assert_eq!(
        serde_json::to_value(&applied.client_config).unwrap(),
        reached("/mutate/red")
    );
}

#[tokio::test]
async fn conversions_policies_and_the_service_are_applied_too() {
    let program = Program::new().await;
    let (_server, reached) = served(&program).await;
    let client = program.cluster.client();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let conversion = definitions
        .get("widgets.demo.dev")
        .await
        .unwrap()
        .spec
        .conversion;
    assert_eq!(
        serde_json::to_value(conversion).unwrap(),
        json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": reached("/convert/widgets.demo.dev"),
                "conversionReviewVersions": ["v1"],
            },
        })
    );
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let policy = policies.get("small.widgets.demo.dev").await.unwrap();
    let policy = serde_json::to_value(policy.spec).unwrap();
    assert_eq!(
        policy["validations"][0]["expression"],
        "object.spec.size <= 5"
    );
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let binding = bindings.get("small.widgets.demo.dev").await.unwrap();
    let binding = serde_json::to_value(binding.spec).unwrap();
    assert_eq!(binding["policyName"], "small.widgets.demo.dev");
    let services: Api<Service> = Api::namespaced(client, "demo");
    let spec = services.get("hooks").await.unwrap().spec.unwrap();
    assert_eq!(spec.selector.unwrap()["app"], "widgets");
    let port = &spec.ports.unwrap()[0];
    assert_eq!(serde_json::to_value(port).unwrap()["targetPort"], 9443);
    assert_eq!(port.port, 8443);
}

#[tokio::test]
async fn a_rotated_authority_is_injected_again() {
    let program = Program::new().await;
    install(&program).await;
    let folder = Folder::new();
    folder.mount(&issue());
    let certificates = Certificates::directory(folder.path()).period(Duration::from_millis(10));
    let webhooks = webhooks(&program).endpoint(Endpoint::url("https://127.0.0.1:9443/"));
    let server = webhooks.serve("127.0.0.1:0", certificates).await.unwrap();
    let second = issue();
    folder.mount(&second);
    let api: Api<ValidatingWebhookConfiguration> = Api::all(program.cluster.client());
    until("the old authority is injected", async || {
        let applied = api
            .get("widgets.demo.dev")
            .await
            .unwrap()
            .webhooks
            .unwrap()
            .remove(0);
        let url = applied.client_config.url.as_deref();
        assert_eq!(url, Some("https://127.0.0.1:9443/validate/quota"));
        (applied.client_config.ca_bundle?.0 == second.authority.as_bytes()).then_some(())
    })
    .await;
    calm(&server.health()).await;
}

#[tokio::test]
async fn an_authority_that_cannot_be_injected_is_tried_again() {
    let program = Program::new().await;
    install(&program).await;
    let folder = Folder::new();
    folder.mount(&issue());
    let certificates = Certificates::directory(folder.path()).period(Duration::from_millis(10));
    let webhooks = webhooks(&program).endpoint(Endpoint::local());
    let server = webhooks.serve("127.0.0.1:0", certificates).await.unwrap();
    assert!(server.applied().await);
    let refused = Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let rule = Rule::new(refused)
        .verb("patch")
        .resource("validatingwebhookconfigurations");
    let rule = program.cluster.faults().add(rule);
    let second = issue();
    folder.mount(&second);
    let health = server.health();
    let reason = raised(&health, "configurations").await;
    assert!(
        reason.contains("ValidatingWebhookConfiguration widgets.demo.dev"),
        "{reason}"
    );
    program.cluster.faults().remove(rule);
    calm(&health).await;
    let api: Api<ValidatingWebhookConfiguration> = Api::all(program.cluster.client());
    let applied = api
        .get("widgets.demo.dev")
        .await
        .unwrap()
        .webhooks
        .unwrap()
        .remove(0);
    assert_eq!(
        applied.client_config.ca_bundle.unwrap().0,
        second.authority.as_bytes()
    );
    let url = format!("https://{}/validate/quota", server.address());
    assert_eq!(applied.client_config.url, Some(url));
}

#[tokio::test]
async fn refused_configuration_is_retried_while_webhooks_are_served() {
    let program = Program::new().await;
    let folder = Folder::new();
    folder.mount(&issue());
    // The CRD of the conversion is missing.
    let webhooks = webhooks(&program).endpoint(Endpoint::local());
    let served = webhooks
        .serve("127.0.0.1:0", Certificates::directory(folder.path()))
        .await;
    let server = served.unwrap();
    let health = server.health();
    let reason = raised(&health, "configurations").await;
    assert!(reason.contains("widgets.demo.dev"), "{reason}");
    assert_eq!(health.check(), Ok(()));
    let caller = Caller::of(&server);
    let probed = get(&caller, "/readyz").await;
    assert_eq!(probed, (200, "ok".to_owned()));
    install(&program).await;
    assert!(server.applied().await);
    calm(&health).await;
}

#[tokio::test]
async fn wrong_names_and_missing_rules_are_errors() {
    let program = Program::new().await;
    let check = |webhooks: Webhooks, expected: &str| {
        let error = webhooks.configurations(None).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    let any = async |_: Admission<Widget>| Ok(Decision::allow());
    let url = || Endpoint::url("https://127.0.0.1:9443");
    let named = |name: &str| {
        program
            .webhooks()
            .endpoint(url())
            .validate(Hook::new(name), any)
    };
    check(
        program
            .webhooks()
            .endpoint(Endpoint::url("http://127.0.0.1")),
        "begin with https://",
    );
    check(named("Quota"), "lower-case");
    check(named("a/b"), "lower-case");
    let short = Webhooks::new("widgets", &program.factory).endpoint(url());
    check(
        short.validate(Hook::new("quota"), any),
        "at least three parts",
    );
    check(
        named("quota").validate(Hook::new("quota"), any),
        "two webhooks have the path /validate/quota",
    );
    let nothing = Hook::<Value>::of("quota", []);
    let of_nothing = program.webhooks().endpoint(url());
    check(
        of_nothing.validate(nothing, async |_| Ok(Decision::allow())),
        "neither a kind nor a rule",
    );
    check(
        program.webhooks().validate(Hook::new("quota"), any),
        "unknown where API servers call the webhooks",
    );
    let policy = Policy::of(Hook::<Value>::of("quota", []));
    check(
        program.webhooks().endpoint(url()).policy(policy),
        "neither a kind nor a rule",
    );
    let small = || Policy::of(Hook::<Widget>::new("small"));
    let twice = program.webhooks().policy(small()).policy(small());
    check(
        twice.endpoint(url()),
        "two policies have the name small.widgets.demo.dev",
    );
    // The same name in two roles is allowed: the paths differ.
    let both = named("quota").defaults(Hook::new("quota"), |_: &mut Widget| {});
    let configurations = both.configurations(Some("pem")).unwrap();
    assert!(configurations.validating.is_some() && configurations.mutating.is_some());
    assert!(configurations.service.is_none());
}

#[tokio::test]
async fn the_rules_of_the_operator_have_what_webhooks_need() {
    let program = Program::new().await;
    let operator = Operator::new("widgets.demo.dev", &program.factory);
    let certificates = Certificates::secret(&ObjectKey::namespaced("demo", "hooks-tls"));
    let _webhooks = webhooks(&program)
        .endpoint(service())
        .declare(&operator, &certificates);
    let role = operator.cluster_role("widgets").await.unwrap();
    let rules = serde_json::to_value(role.rules).unwrap().to_string();
    for expected in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "customresourcedefinitions",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "services",
        "secrets",
    ] {
        assert!(rules.contains(expected), "{rules}");
    }
    // The manifests allow the Secret and the Service in their namespace only.
    let account = ObjectKey::namespaced("demo", "widgets");
    let manifests = operator
        .manifests("widgets", &account)
        .await
        .unwrap()
        .to_string();
    let role = manifests
        .split("---")
        .find(|text| text.contains("kind: Role\n"))
        .unwrap();
    assert!(
        role.contains("hooks-tls") && role.contains("hooks"),
        "{role}"
    );
}

/// Returns the verbs on a resource, each with the name that it is restricted to.
async fn verbs(webhooks: Webhooks, plural: &str) -> Vec<String> {
    let program = Program::new().await;
    let operator = Operator::new("widgets.demo.dev", &program.factory);
    let certificates = Certificates::secret(&ObjectKey::namespaced("demo", "hooks-tls"));
    let _declared = webhooks.declare(&operator, &certificates);
    let role = operator.cluster_role("widgets").await.unwrap();
    let rules = role.rules.into_iter().flatten();
    let named = rules.filter(|rule| rule.resources.iter().flatten().any(|it| it == plural));
    let verbs = named.flat_map(|rule| {
        let names = rule.resource_names.unwrap_or_default().join(" ");
        let verbs = rule.verbs.into_iter();
        verbs.map(move |verb| format!("{verb} {names}").trim().to_owned())
    });
    let mut verbs: Vec<String> = verbs.collect();
    verbs.sort();
    verbs
}

#[tokio::test]
async fn derived_permissions_are_restricted_to_names_of_the_program() {
    let program = Program::new().await;
    let any = async |_: Admission<Widget>| Ok(Decision::allow());
    let one = || {
        let webhooks = program.webhooks().validate(Hook::new("any"), any);
        webhooks.endpoint(service())
    };
    let check = async |webhooks: Webhooks, plural: &str, expected: &[&str]| {
        assert_eq!(verbs(webhooks, plural).await, expected, "{plural}");
    };
    let own = ["create", "get widgets.demo.dev", "patch widgets.demo.dev"];
    check(one(), "validatingwebhookconfigurations", &own).await;
    // A predecessor may have had mutating webhooks, whose paths no server has any more.
    let removed = ["delete widgets.demo.dev", "get widgets.demo.dev"];
    check(one(), "mutatingwebhookconfigurations", &removed).await;
    for plural in [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
    ] {
        check(one(), plural, &[]).await;
        let removed = [
            "delete small.widgets.demo.dev",
            "get small.widgets.demo.dev",
        ];
        check(one().remove_policy("small"), plural, &removed).await;
    }
}

#[tokio::test]
async fn certificate_without_endpoint_name_is_unready_and_not_configured() {
    let program = Program::new().await;
    install(&program).await;
    let folder = Folder::new();
    folder.mount(&issue_for(["other.demo.svc"]));
    let certificates = Certificates::directory(folder.path()).period(Duration::from_millis(10));
    let webhooks = webhooks(&program).endpoint(service());
    let server = webhooks.serve("127.0.0.1:0", certificates).await.unwrap();
    let health = server.health();
    let reason = raised(&health, "configurations").await;
    assert!(reason.contains("does not cover hooks.demo.svc"), "{reason}");
    let api: Api<ValidatingWebhookConfiguration> = Api::all(program.cluster.client());
    assert!(api.get_opt("widgets.demo.dev").await.unwrap().is_none());
    let unready = health.check().unwrap_err();
    assert!(
        unready.contains("does not cover hooks.demo.svc"),
        "{unready}"
    );
    folder.mount(&issue());
    assert!(server.applied().await);
    assert_eq!(health.check(), Ok(()));
}

#[tokio::test]
async fn authority_of_another_certificate_is_not_configured() {
    let program = Program::new().await;
    install(&program).await;
    let folder = Folder::new();
    let mut torn = issue();
    torn.authority = issue().authority;
    folder.mount(&torn);
    let webhooks = webhooks(&program).endpoint(service());
    let server = webhooks
        .serve("127.0.0.1:0", Certificates::directory(folder.path()))
        .await
        .unwrap();
    let reason = raised(&server.health(), "configurations").await;
    assert!(reason.contains("does not vouch"), "{reason}");
    let api: Api<ValidatingWebhookConfiguration> = Api::all(program.cluster.client());
    assert!(api.get_opt("widgets.demo.dev").await.unwrap().is_none());
}
