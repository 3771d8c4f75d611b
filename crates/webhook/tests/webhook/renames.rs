//! Tests of endpoints that get another name.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use lariat_cluster::faults::{Action, Rule};
use lariat_cluster::testing::namespace;
use lariat_core::ObjectKey;
use lariat_webhook::{Admission, Certificates, Decision, Endpoint, Hook, WebhookServer};
use serde_json::json;

use crate::support::{Caller, Program, until};

fn certificates() -> Certificates {
    Certificates::secret(&ObjectKey::namespaced("demo", "webhooks-tls"))
        .period(Duration::from_millis(20))
}

async fn program() -> Program {
    let program = Program::new().await;
    let client = program.cluster.client();
    namespace("demo").create(&client).await.unwrap();
    program
}

/// Serves a release whose webhook denies ConfigMaps, and waits until it is called.
async fn release(program: &Program, address: &str, endpoint: Endpoint) -> WebhookServer {
    let server = begin(program, address, endpoint).await;
    assert!(server.applied().await);
    server
}

async fn begin(program: &Program, address: &str, endpoint: Endpoint) -> WebhookServer {
    let deny = async |_: Admission<ConfigMap>| Ok(Decision::deny("it was called"));
    let webhooks = program.webhooks().validate(Hook::new("any"), deny);
    let webhooks = webhooks.endpoint(endpoint);
    webhooks.serve(address, certificates()).await.unwrap()
}

#[tokio::test]
async fn renamed_endpoint_is_called_at_once() {
    let program = program().await;
    let maps: Api<ConfigMap> = Api::namespaced(program.cluster.client(), "demo");
    let map = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let first = release(&program, "127.0.0.1:0", Endpoint::local()).await;
    let (address, authority) = (first.address(), first.authority().unwrap());
    first.shutdown().await;
    for host in ["localhost", "127.0.0.1", "localhost"] {
        let endpoint = Endpoint::url(&format!("https://{host}:{}", address.port()));
        let server = release(&program, &address.to_string(), endpoint).await;
        assert_eq!(server.health().check(), Ok(()));
        let refused = maps.create(&PostParams::default(), &map).await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("it was called"), "{text}");
        // API servers that have the configuration of the release before go on trusting it.
        let old = Caller::at(address.port(), &authority);
        old.connect().await.unwrap();
        server.shutdown().await;
    }
}

/// Its clients send no name, and do not trust the next certificate yet.
#[tokio::test]
async fn former_address_is_served_until_configurations_have_new_name() {
    for host in ["localhost", "127.0.0.2"] {
        let program = program().await;
        let first = release(&program, "127.0.0.1:0", Endpoint::url("https://127.0.0.1")).await;
        let before = first.authority().unwrap();
        first.shutdown().await;
        let slow = Rule::new(Action::NoAnswer).resource("validatingwebhookconfigurations");
        program.cluster.faults().add(slow);
        let endpoint = Endpoint::url(&format!("https://{host}"));
        let second = begin(&program, "127.0.0.1:0", endpoint).await;
        let old = Caller::trusting(&second, &before);
        old.connect().await.unwrap();
        second.shutdown().await;
    }
}

#[tokio::test]
async fn certificate_covers_old_and_new_service_before_overlap_ends() {
    let program = program().await;
    let service = |name: &str| Endpoint::service(&ObjectKey::namespaced("demo", name));
    let first = release(&program, "127.0.0.1:0", service("old")).await;
    let before = first.authority().unwrap();
    let second = release(&program, "127.0.0.1:0", service("new")).await;
    let after = second.authority().unwrap();
    // Behind both Services there may be servers of both releases.
    for server in [&first, &second] {
        for bundle in [&before, &after] {
            let old = Caller::trusting(server, bundle).calling("old.demo.svc");
            old.connect().await.unwrap();
        }
        let new = Caller::trusting(server, &after).calling("new.demo.svc");
        until("the new name is not covered", async || {
            new.connect().await.ok()
        })
        .await;
        assert_eq!(server.health().check(), Ok(()));
    }
}
