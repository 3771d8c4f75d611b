//! Tests of generated certificates, in a Secret that replicas share.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::{namespace, secret};
use lariat_core::ObjectKey;
use lariat_webhook::{
    Admission, CertificateError, Certificates, Decision, Endpoint, Hook, WebhookError,
    WebhookServer,
};
use serde_json::{Value, json};

use crate::support::{Caller, Program, Widget, calm, get, raised, review, until, widget};

fn made() -> Certificates {
    let key = ObjectKey::namespaced("demo", "webhooks-tls");
    Certificates::secret(&key)
        .names(["127.0.0.1"])
        .period(Duration::from_millis(20))
}

async fn serve(
    program: &Program,
    certificates: Certificates,
) -> Result<WebhookServer, WebhookError> {
    let hook = Hook::new("any");
    let webhooks = program
        .webhooks()
        .validate(hook, async |_: Admission<Widget>| Ok(Decision::allow()));
    webhooks.serve("127.0.0.1:0", certificates).await
}

async fn stored(program: &Program) -> BTreeMap<String, String> {
    let api: Api<Secret> = Api::namespaced(program.cluster.client(), "demo");
    let secret = api.get("webhooks-tls").await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("kubernetes.io/tls"));
    let data = secret.data.unwrap().into_iter();
    data.map(|(name, value)| (name, String::from_utf8(value.0).unwrap()))
        .collect()
}

async fn record(program: &Program) -> Value {
    serde_json::from_str(&stored(program).await["rotation.json"]).unwrap()
}

async fn call(caller: &Caller) -> u16 {
    let review = review("CREATE", &widget(&json!({})), &Value::Null);
    caller.post("/validate/any", review.to_string()).await.0
}

async fn program() -> Program {
    let program = Program::new().await;
    namespace("demo")
        .create(&program.cluster.client())
        .await
        .unwrap();
    program
}

#[tokio::test]
async fn replicas_that_start_at_once_show_one_certificate() {
    let program = program().await;
    let replicas = join_all((0..5).map(|_| serve(&program, made()))).await;
    let replicas: Vec<WebhookServer> = replicas.into_iter().map(Result::unwrap).collect();
    let stored = stored(&program).await;
    for replica in &replicas {
        assert_eq!(replica.authority().as_deref(), Some(&*stored["ca.crt"]));
        assert_eq!(
            call(&Caller::trusting(replica, &stored["ca.crt"])).await,
            200
        );
    }
    assert_eq!(stored["ca.crt"].matches("BEGIN CERTIFICATE").count(), 1);
}

#[tokio::test]
async fn a_client_that_follows_the_bundle_is_never_without_trust_while_certificates_rotate() {
    let program = program().await;
    // A new authority is generated every four seconds, and trusted for one second before it is used.
    let certificates = made()
        .validity(Duration::from_secs(6))
        .overlap(Duration::from_secs(1));
    let server = serve(&program, certificates).await.unwrap();
    let first = server.authority().unwrap();
    let mut bundles = vec![first.clone()];
    // Until the first authority is no longer trusted, and its successor is not the only one.
    until("the first authority is trusted", async || {
        let bundle = server.authority().unwrap();
        let caller = Caller::trusting(&server, &bundle);
        assert_eq!(call(&caller).await, 200);
        if bundles.last() != Some(&bundle) {
            bundles.push(bundle.clone());
        }
        (!bundle.contains(&first)).then_some(())
    })
    .await;
    // Each bundle has an authority in common with the one before.
    for pair in bundles.windows(2) {
        let mut authorities = pair[0].split_inclusive("-----END CERTIFICATE-----\n");
        assert!(authorities.any(|authority| pair[1].contains(authority)));
    }
    assert!(bundles.len() >= 3, "{}", bundles.len());
}

#[tokio::test]
async fn the_next_certificate_is_not_shown_while_its_authority_cannot_be_injected() {
    let program = program().await;
    let hook = Hook::new("any");
    let webhooks = program
        .webhooks()
        .validate(hook, async |_: Admission<Widget>| Ok(Decision::allow()))
        .endpoint(Endpoint::local());
    // The next one is served as soon as it is trusted.
    let certificates = made().overlap(Duration::ZERO);
    let server = webhooks.serve("127.0.0.1:0", certificates).await.unwrap();
    assert!(server.applied().await);
    let refused = Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let rule = program.cluster.faults().add(
        Rule::new(refused)
            .verb("patch")
            .resource("validatingwebhookconfigurations"),
    );
    let first = Caller::of(&server);
    // A replica with another name causes a new certificate.
    let more = serve(&program, made().names(["more"])).await.unwrap();
    raised(&server.health(), "configurations").await;
    let reads = || program.cluster.journal().count("get", "secrets");
    let before = reads();
    until("the Secret is not read", async || {
        (reads() > before + 10).then_some(())
    })
    .await;
    let record = record(&program).await;
    assert!(record["next"][0].is_object() && record["injected"].is_null());
    assert_eq!(call(&first).await, 200);
    more.shutdown().await;
    program.cluster.faults().remove(rule);
    until("the next certificate is not shown", async || {
        let present = self::record(&program).await;
        (present["current"] == record["next"][0]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_validity_of_nothing_is_an_error() {
    let program = program().await;
    let error = serve(&program, made().validity(Duration::ZERO))
        .await
        .unwrap_err();
    let unusable = CertificateError::Validity(Duration::ZERO).to_string();
    assert_eq!(error.to_string(), unusable);
}

#[tokio::test]
async fn a_secret_of_another_program_is_left_alone() {
    let program = program().await;
    let client = program.cluster.client();
    secret(
        "webhooks-tls",
        &[("tls.crt", "theirs"), ("tls.key", "theirs")],
    )
    .namespace("demo")
    .create(&client)
    .await
    .unwrap();
    let error = serve(&program, made()).await.unwrap_err();
    assert!(
        matches!(
            error,
            WebhookError::Certificates(CertificateError::Foreign(_))
        ),
        "{error}"
    );
    let api: Api<Secret> = Api::namespaced(client, "demo");
    let data = api.get("webhooks-tls").await.unwrap().data.unwrap();
    assert_eq!(data["tls.crt"].0, b"theirs");
}

#[tokio::test]
async fn empty_secret_is_filled() {
    let program = program().await;
    let api: Api<Secret> = Api::namespaced(program.cluster.client(), "demo");
    let empty: Secret = serde_json::from_value(json!({
        "metadata": {"name": "webhooks-tls"}, "type": "kubernetes.io/tls",
        "data": {"tls.crt": "", "tls.key": ""},
    }))
    .unwrap();
    let created = api.create(&PostParams::default(), &empty).await.unwrap();
    let _server = serve(&program, made()).await.unwrap();
    let filled = api.get("webhooks-tls").await.unwrap();
    assert_eq!(filled.metadata.uid, created.metadata.uid);
    assert!(record(&program).await["current"].is_object());
}

#[tokio::test]
async fn damaged_or_deleted_secret_gets_served_certificate_back() {
    let program = program().await;
    let api: Api<Secret> = Api::namespaced(program.cluster.client(), "demo");
    let server = serve(&program, made()).await.unwrap();
    let first = record(&program).await["current"].clone();
    let caller = Caller::of(&server);
    let restored = async || {
        let restored = until("the record is not restored", async || {
            let secret = api.get_opt("webhooks-tls").await.unwrap()?;
            let record = &secret.data.as_ref()?.get("rotation.json")?.0;
            serde_json::from_slice::<Value>(record).ok()
        });
        let restored = restored.await;
        // Its successor is trusted before it is used.
        assert!(restored["current"] == first && restored["next"][0].is_object());
        assert_eq!(call(&caller).await, 200);
    };
    let mut secret = api.get("webhooks-tls").await.unwrap();
    let data = secret.data.as_mut().unwrap();
    data.get_mut("rotation.json").unwrap().0 = b"{".to_vec();
    let params = PostParams::default();
    api.replace("webhooks-tls", &params, &secret).await.unwrap();
    restored().await;
    let deleted = api.delete("webhooks-tls", &DeleteParams::default()).await;
    deleted.unwrap();
    restored().await;
}

#[tokio::test]
async fn an_api_server_that_is_away_keeps_the_certificate() {
    let program = program().await;
    let server = serve(&program, made()).await.unwrap();
    let refused = Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let rule = program
        .cluster
        .faults()
        .add(Rule::new(refused).resource("secrets"));
    let health = server.health();
    let reason = raised(&health, "renewal").await;
    assert!(reason.contains("demo/webhooks-tls"), "{reason}");
    // A renewal that fails long before the end affects no call, and so no readiness.
    let caller = Caller::of(&server);
    assert_eq!(get(&caller, "/readyz").await, (200, "ok".to_owned()));
    let (status, text) = get(&caller, "/healthz?verbose").await;
    assert_eq!(
        (status, &*text),
        (
            200,
            "[+]ping ok\n[-]renewal failed: reason withheld, does not count\nhealthz check passed\n"
        )
    );
    assert_eq!(call(&Caller::of(&server)).await, 200);
    program.cluster.faults().remove(rule);
    calm(&health).await;
}

#[tokio::test]
async fn a_namespace_that_is_missing_is_an_error_with_the_name_of_the_secret() {
    let program = Program::new().await;
    let error = serve(&program, made()).await.unwrap_err();
    assert!(error.to_string().contains("demo/webhooks-tls"), "{error}");
}

#[tokio::test]
async fn certificates_are_for_the_names_of_the_service() {
    let program = program().await;
    let key = ObjectKey::namespaced("demo", "webhooks-tls");
    let endpoint =
        Endpoint::service(&ObjectKey::namespaced("demo", "hooks")).selects("app", "hooks");
    let hook = Hook::new("any");
    let webhooks = program
        .webhooks()
        .validate(hook, async |_: Admission<Widget>| Ok(Decision::allow()));
    let webhooks = webhooks.endpoint(endpoint);
    let _server = webhooks
        .serve("127.0.0.1:0", Certificates::secret(&key))
        .await
        .unwrap();
    let record: Value = serde_json::from_str(&stored(&program).await["rotation.json"]).unwrap();
    assert_eq!(
        record["current"]["names"],
        json!(["hooks.demo.svc", "hooks.demo.svc.cluster.local"])
    );
}
