//! What the webhooks set, deny and warn of, and what happens while they are down.

use k8s_openapi::api::apps::v1::Deployment;
use lariat::cluster::testing::{eventually, wait_for, wait_until_gone};
use lariat::kube::api::{DeleteParams, PostParams};
use lariat::kube::client::Body;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::kind::INDEX;
use super::super::kind::v1::Website;
use super::super::serve as serve_console;
use super::bench::{Bench, NAME, refusal, serve, site, site_with_secret};
use crate::{TIMEOUT, delete, merge};

#[tokio::test(flavor = "multi_thread")]
async fn the_host_follows_from_the_name_unless_it_is_given() {
    let bench = Bench::new().await;
    let created = bench.create(&site("shop")).await;
    assert_eq!(created.spec.host.as_deref(), Some("shop.default.demo.dev"));
    let mut given = site("other");
    given.spec.host = Some("other.example.com".to_owned());
    assert_eq!(bench.create(&given).await.spec.host, given.spec.host);
    let mut generated = site("");
    generated.metadata.generate_name = Some("shop-".to_owned());
    generated.metadata.name = None;
    let status = bench.refused(&generated).await;
    assert!(status.message.contains("needs a spec.host"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_field_that_is_wrong_is_a_cause_of_the_denial() {
    let bench = Bench::new().await;
    let mut wrong = site("shop");
    wrong.spec.pages = ["../etc", "about us.html"]
        .map(|name| (name.to_owned(), String::new()))
        .into();
    let status = bench.refused(&wrong).await;
    assert_eq!(
        (status.code, &*status.reason),
        (422, "Invalid"),
        "{status:?}"
    );
    let causes = status.details.unwrap().causes;
    let fields: Vec<_> = causes.iter().map(|cause| &*cause.field).collect();
    assert_eq!(
        fields,
        [
            "spec.pages[\"../etc\"]",
            "spec.pages[\"about us.html\"]",
            "spec.pages"
        ]
    );
    assert_eq!(causes[2].message, "has no index.html");
    let mut long = site("shop");
    long.spec
        .pages
        .insert(INDEX.to_owned(), "x".repeat(1_000_000));
    let status = bench.refused(&long).await;
    assert!(
        status
            .message
            .contains("has 1000010 bytes; 1000000 are the most"),
        "{}",
        status.message
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_another_website_has_is_denied_until_it_is_gone() {
    let bench = Bench::new().await;
    bench.create(&site("shop")).await;
    bench.until_cached::<Website>("shop").await;
    let mut copy = site("copy");
    copy.spec.host = Some("shop.default.demo.dev".to_owned());
    let status = bench.refused(&copy).await;
    let expected = "spec.host: is the host of default/shop already";
    assert!(status.message.contains(expected), "{status:?}");
    // It is not its own rival.
    let more = json!({"spec": {"replicas": 2}});
    merge(&bench.sites, "shop", more).await.unwrap();
    delete(&bench.sites, "shop").await.unwrap();
    wait_until_gone(&bench.sites, "shop").await.unwrap();
    let params = PostParams::default();
    let create = async || bench.sites.create(&params, &copy).await;
    eventually(TIMEOUT, create).await.unwrap();
}

/// Creates a Website, and returns the warnings of the API server.
async fn warnings(bench: &Bench, site: &Website) -> Vec<String> {
    let path = "/apis/website.demo.dev/v1/namespaces/default/websites";
    let body = serde_json::to_vec(site).unwrap();
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(body)).unwrap();
    let response = bench.cluster.client().send(request).await.unwrap();
    assert_eq!(response.status(), 201);
    let warnings = response.headers().get_all("warning").iter();
    warnings
        .map(|warning| warning.to_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_missing_is_a_warning() {
    let bench = Bench::new().await;
    let warned = warnings(&bench, &site_with_secret("shop", "environment")).await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(
        warned[0].contains("there is no Secret environment yet"),
        "{warned:?}"
    );
    bench.create_secret("environment", "hello").await;
    bench
        .until_cached::<k8s_openapi::api::core::v1::Secret>("environment")
        .await;
    let warned = warnings(&bench, &site_with_secret("other", "environment")).await;
    assert_eq!(warned, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_webhooks_are_down_no_spec_changes_and_what_is_there_is_kept_and_cleaned_up() {
    let bench = Bench::new().await;
    bench.create(&site("shop")).await;
    bench.ready("shop").await;
    bench.server.shutdown().await;
    let status = bench.refused(&site("other")).await;
    assert_eq!(status.code, 500, "{status:?}");
    let scaled = json!({"spec": {"replicas": 3}});
    merge(&bench.sites, "shop", scaled).await.unwrap_err();
    let deployments = bench.api::<Deployment>();
    let before = deployments.get("shop").await.unwrap().metadata.uid;
    delete(&deployments, "shop").await.unwrap();
    let is_new = |deployment: &Deployment| deployment.metadata.uid != before;
    wait_for(&deployments, "shop", is_new).await.unwrap();
    // The match conditions spare the calls, so the finalizer is removed.
    bench
        .sites
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    wait_until_gone(&bench.sites, "shop").await.unwrap();
    assert_eq!(bench.objects("shop").await, [false; 3]);
    let (_server, _) = serve(&bench.operator).await;
    let create = async || {
        bench
            .sites
            .create(&PostParams::default(), &site("other"))
            .await
    };
    eventually(TIMEOUT, create).await.unwrap();
}

async fn ask(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_have_the_webhooks() {
    let bench = Bench::new().await;
    let (factory, metrics) = (bench.operator.factory(), bench.metrics.clone());
    let console = serve_console(factory, "127.0.0.1:0", &bench.server, metrics).unwrap();
    let ready = ask(console.address(), "/readyz?verbose").await;
    assert!(
        ready.starts_with("HTTP/1.1 200 ") && ready.contains("[+]webhooks ok"),
        "{ready}"
    );
    let name = format!("website.{NAME}");
    let status = refusal(
        bench
            .sites
            .create(&PostParams::default(), &{
                let mut wrong = site("wrong");
                wrong.spec.pages.clear();
                wrong
            })
            .await,
    );
    assert!(status.message.contains(&name), "{status:?}");
    let page = ask(console.address(), "/metrics").await;
    for expected in [
        "controller_runtime_webhook_requests_total{webhook=\"/validate/website\",code=\"200\"}",
        "controller_runtime_webhook_requests_total{webhook=\"/mutate/host\",code=\"200\"}",
        "controller_runtime_webhook_requests_total{webhook=\"/convert/websites.website.demo.dev\",code=\"200\"}",
        "workqueue_adds_total{",
    ] {
        assert!(page.contains(expected), "no {expected} in\n{page}");
    }
    bench.server.shutdown().await;
    // The console remembers the results of checks for a moment.
    let failed = async || {
        let ready = ask(console.address(), "/readyz?verbose").await;
        let is_failed = ready.starts_with("HTTP/1.1 500 ") && ready.contains("[-]webhooks failed");
        is_failed.then_some(()).ok_or(ready)
    };
    eventually(TIMEOUT, failed).await.unwrap();
}
