//! Tests of releases that fail after any number of requests.
//!
//! **Invariant:** a configuration with the policy `Fail` leads to a server that has its path, with a certificate that
//! its authorities vouch for and that covers its host.

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use lariat_cluster::RecordedRequest;
use lariat_cluster::faults::{Action, Refusal, Rule, RuleId, StatusCode};
use lariat_cluster::testing::namespace;
use lariat_core::ObjectKey;
use lariat_webhook::{
    Admission, Certificates, Decision, Endpoint, Hook, Policy, WebhookServer, Webhooks,
};

use crate::support::{Caller, Program, Widget, calm, until};

fn certificates() -> Certificates {
    Certificates::secret(&ObjectKey::namespaced("demo", "webhooks-tls"))
        // No read between the steps.
        .period(Duration::from_secs(3600))
}

fn quota(webhooks: Webhooks) -> Webhooks {
    let any = async |_: Admission<Widget>| Ok(Decision::allow());
    webhooks.validate(Hook::new("quota"), any)
}

fn red(webhooks: Webhooks) -> Webhooks {
    webhooks.defaults(Hook::new("red"), |_: &mut Widget| {})
}

fn small(webhooks: Webhooks) -> Webhooks {
    webhooks.policy(Policy::of(Hook::<Widget>::new("small")).rule("true", "never"))
}

/// A release: its webhooks, and the host at which they are called.
struct Release {
    webhooks: fn(Webhooks) -> Webhooks,
    host: &'static str,
    /// Whether it has mutating webhooks.
    mutates: bool,
}

impl Release {
    /// Serves the release on the port of a server that has ended, if there is one.
    async fn serve(&self, program: &Program, port: u16) -> Option<WebhookServer> {
        self.serve_with(program, port, certificates()).await
    }

    async fn serve_with(
        &self,
        program: &Program,
        port: u16,
        certificates: Certificates,
    ) -> Option<WebhookServer> {
        let webhooks = (self.webhooks)(program.webhooks());
        let endpoint = Endpoint::url(&format!("https://{}:{port}", self.host));
        let webhooks = webhooks.endpoint(endpoint);
        let address = format!("127.0.0.1:{port}");
        webhooks.serve(&address, certificates).await.ok()
    }
}

/// Checks the invariant.
async fn check(program: &Program, step: &str) {
    let client = program.cluster.client();
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client);
    let params = ListParams::default();
    let mut configured: Vec<WebhookClientConfig> = Vec::new();
    for object in validating.list(&params).await.unwrap() {
        let webhooks = object.webhooks.unwrap_or_default().into_iter();
        configured.extend(webhooks.map(|webhook| webhook.client_config));
    }
    for object in mutating.list(&params).await.unwrap() {
        let webhooks = object.webhooks.unwrap_or_default().into_iter();
        configured.extend(webhooks.map(|webhook| webhook.client_config));
    }
    for config in configured {
        let url = config.url.unwrap();
        let rest = url.strip_prefix("https://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap();
        let (host, port) = authority.split_once(':').unwrap();
        let bundle = String::from_utf8(config.ca_bundle.unwrap().0).unwrap();
        let caller = Caller::at(port.parse().unwrap(), &bundle).calling(host);
        let answered = caller.try_post(&format!("/{path}"), "{}").await;
        let (status, text) = answered.unwrap_or_else(|error| panic!("{step}: {url}: {error}"));
        // The request is none that an API server sends.
        assert_eq!(status, 400, "{step}: {url}: {text}");
    }
}

/// Fails each request but the first ones. The tests list, which webhooks do not.
fn fail_after(program: &Program, requests: u64) -> RuleId {
    let refused = Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let of_webhooks = |request: &RecordedRequest| request.verb != "list";
    let rule = Rule::new(refused).when(of_webhooks).skip(requests);
    program.cluster.faults().add(rule)
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Lets a release follow another one, and fail after 0, 1, 2 … requests, until nothing fails.
async fn at_each_step(before: Option<Release>, after: Release) {
    for requests in 0.. {
        let program = Program::new().await;
        let client = program.cluster.client();
        namespace("demo").create(&client).await.unwrap();
        let mut former = None;
        if let Some(before) = &before {
            let server = before.serve(&program, free_port()).await.unwrap();
            settled(&server, before, &program).await;
            former = Some(server);
        }
        check(&program, "before").await;
        let rule = fail_after(&program, requests);
        let port = free_port();
        let server = after.serve(&program, port).await;
        if let Some(server) = &server {
            tokio::select! {
                () = met(&program, rule) => {}
                () = settled(server, &after, &program) => {}
            }
        }
        let step = format!("after {requests} requests");
        check(&program, &step).await;
        let is_last = program.cluster.faults().hits(rule) == 0;
        program.cluster.faults().remove(rule);
        // The program ends, and another start succeeds.
        if let Some(server) = server {
            server.shutdown().await;
        }
        let server = after.serve(&program, port).await.unwrap();
        settled(&server, &after, &program).await;
        calm(&server.health()).await;
        if let Some(former) = former {
            former.shutdown().await;
        }
        check(&program, &format!("{step}, restarted")).await;
        if is_last {
            assert!(requests > 3, "the faults were met");
            return;
        }
    }
}

/// Waits until a server has applied and removed everything.
async fn settled(server: &WebhookServer, release: &Release, program: &Program) {
    assert!(server.applied().await);
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(program.cluster.client());
    until("a configuration stays", async || {
        let found = mutating.list(&ListParams::default()).await.unwrap();
        (found.items.is_empty() != release.mutates).then_some(())
    })
    .await;
}

/// Waits until a rule has refused a request.
async fn met(program: &Program, rule: RuleId) {
    until("no fault is met", async || {
        (program.cluster.faults().hits(rule) > 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn first_release_never_points_at_missing_server_after_failed_request() {
    let after = Release {
        webhooks: |it| red(quota(small(it))),
        host: "127.0.0.1",
        mutates: true,
    };
    at_each_step(None, after).await;
}

#[tokio::test]
async fn renamed_release_never_points_at_missing_server_after_failed_request() {
    let before = Release {
        webhooks: |it| red(quota(it)),
        host: "127.0.0.1",
        mutates: true,
    };
    let after = Release {
        webhooks: |it| red(quota(it)),
        host: "localhost",
        mutates: true,
    };
    at_each_step(Some(before), after).await;
}

#[tokio::test]
async fn smaller_release_never_points_at_missing_path_after_failed_request() {
    let before = Release {
        webhooks: |it| red(quota(small(it))),
        host: "127.0.0.1",
        mutates: true,
    };
    let after = Release {
        webhooks: quota,
        host: "localhost",
        mutates: false,
    };
    at_each_step(Some(before), after).await;
}

#[tokio::test]
async fn rotation_never_shows_untrusted_certificate_after_failed_request() {
    let release = Release {
        webhooks: |it| red(quota(it)),
        host: "localhost",
        mutates: true,
    };
    for requests in 0..12 {
        let program = Program::new().await;
        let client = program.cluster.client();
        namespace("demo").create(&client).await.unwrap();
        let quickly = certificates()
            .period(Duration::from_millis(20))
            .overlap(Duration::ZERO);
        let server = release.serve_with(&program, free_port(), quickly).await;
        let server = server.unwrap();
        settled(&server, &release, &program).await;
        let first = server.authority().unwrap();
        // A deleted Secret asks for another certificate.
        let secrets: Api<Secret> = Api::namespaced(client, "demo");
        let params = DeleteParams::default();
        secrets.delete("webhooks-tls", &params).await.unwrap();
        let rule = fail_after(&program, requests);
        until("no further request was made", async || {
            (program.cluster.faults().hits(rule) > 2).then_some(())
        })
        .await;
        let step = format!("after {requests} requests");
        check(&program, &step).await;
        program.cluster.faults().remove(rule);
        until("the certificate stays", async || {
            let bundle = server.authority().unwrap();
            // The former authority is the last one by then.
            (!bundle.starts_with(&first)).then_some(())
        })
        .await;
        calm(&server.health()).await;
        check(&program, &format!("{step}, rotated")).await;
        server.shutdown().await;
    }
}
