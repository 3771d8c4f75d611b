//! Requests at random: whatever clients send, they get an answer they can read, and the cluster goes on.
//!
//! `LARIAT_FUZZ_SEED` repeats a run, `LARIAT_FUZZ_CASES` sets how long it is.

use std::time::Duration;

use fastrand::Rng;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use lariat_cluster::{Cluster, Workloads};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;

use crate::bench::Bench;
use crate::fuzz_requests::{Ask, Served, ask};
use crate::kinds::definition;

/// How many requests are sent between two looks at whether all is well.
const ROUND: u64 = 500;
/// Longer than any request takes, on paused time.
const TIMEOUT: Duration = Duration::from_secs(600);

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn no_request_does_any_harm() {
    let seed = setting("LARIAT_FUZZ_SEED").unwrap_or_else(|| fastrand::u64(..));
    let cases = setting("LARIAT_FUZZ_CASES").unwrap_or(2 * ROUND);
    println!("LARIAT_FUZZ_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let bench = start(seed).await;
    let served = served(&bench).await;
    let mut tokens = Vec::new();
    for case in 0..cases {
        let ask = ask(&mut rng, &served, &tokens);
        let answer = timeout(TIMEOUT, send(&bench, &ask)).await;
        let said = match answer {
            Ok(answer) => answer,
            Err(_) => Err("no answer".to_owned()),
        };
        match said {
            Ok(token) => tokens.extend(token),
            Err(fault) => panic!("seed {seed}, case {case}: {fault}\n{}", shown(&ask)),
        }
        tokens.truncate(20);
        if case % ROUND == ROUND - 1 {
            check_alive(&bench, case).await;
        }
    }
    bench.cluster.shutdown().await;
}

async fn start(seed: u64) -> Bench {
    let cluster = Cluster::builder().history(1000).seed(seed).admin(false);
    let cluster = cluster
        .simulate_workloads(Workloads::default())
        .start()
        .await;
    let bench = Bench {
        cluster: cluster.expect("a cluster without a socket starts"),
    };
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let namespace = json!({"metadata": {"name": "x"}});
    bench.post("/api/v1/namespaces", &namespace).await;
    bench
}

/// Asks which resources and subresources there are.
pub(crate) async fn served(bench: &Bench) -> Vec<Served> {
    let groups = bench.get("/apis").await.json();
    let groups = groups["groups"].as_array().cloned().unwrap_or_default();
    let versions = groups
        .iter()
        .flat_map(|group| group["versions"].as_array())
        .flatten();
    let versions = versions.filter_map(|version| version["groupVersion"].as_str());
    let mut paths: Vec<String> = versions.map(|version| format!("/apis/{version}")).collect();
    paths.push("/api/v1".into());
    let mut served = Vec::new();
    for version in paths {
        let list = bench.get(&version).await.json();
        for resource in list["resources"].as_array().into_iter().flatten() {
            let resource = Served {
                version: version.clone(),
                plural: resource["name"].as_str().unwrap_or_default().to_owned(),
                namespaced: resource["namespaced"] == true,
            };
            // Kinds that much hangs on come more often than others.
            let busy = [
                "pods",
                "deployments",
                "widgets",
                "jobs",
                "customresourcedefinitions",
            ];
            let times = if busy.contains(&resource.plural.as_str()) {
                8
            } else {
                1
            };
            for _ in 0..times {
                served.push(Served {
                    version: version.clone(),
                    plural: resource.plural.clone(),
                    ..resource
                });
            }
        }
    }
    assert!(served.len() > 100, "{served:?}");
    served
}

/// Sends a request and checks the answer; returns the token to go on with, if there is one.
async fn send(bench: &Bench, ask: &Ask) -> Result<Option<String>, String> {
    let mut request = Request::builder().method(&ask.method).uri(&ask.path);
    for (name, value) in &ask.headers {
        request = request.header(*name, value);
    }
    // What is no URI does not get as far as the cluster.
    let Ok(request) = request.body(Full::<bytes::Bytes>::from(ask.body.clone())) else {
        return Ok(None);
    };
    let response = bench.cluster.service().call(request).await;
    let (parts, mut body) = response.map_err(|error| error.to_string())?.into_parts();
    let kind = parts.headers.get("content-type");
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if parts.status.is_success() && body.size_hint_is_open() {
        // Perhaps a watch, of which a few events are enough.
        for _ in 0..5 {
            let _ = timeout(Duration::from_millis(10), body.frame()).await;
        }
        return Ok(None);
    }
    let bytes = body
        .collect()
        .await
        .map_err(|error| error.to_string())?
        .to_bytes();
    if parts.headers.contains_key("content-encoding") || !is_json {
        return defect(&String::from_utf8_lossy(&bytes));
    }
    let text = String::from_utf8_lossy(&bytes);
    defect(&text)?;
    check(parts.status, &text)
}

trait Open {
    fn size_hint_is_open(&self) -> bool;
}

impl<B: http_body::Body> Open for B {
    fn size_hint_is_open(&self) -> bool {
        self.size_hint().exact().is_none()
    }
}

fn defect(text: &str) -> Result<Option<String>, String> {
    if text.contains("the server has a defect") {
        Err(text.to_owned())
    } else {
        Ok(None)
    }
}

/// Checks that an answer is JSON, and a Status if it is no success.
fn check(code: StatusCode, text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let document: Value = serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))?;
    if code.is_success() {
        let token = document["metadata"]["continue"].as_str();
        return Ok(token.filter(|token| !token.is_empty()).map(str::to_owned));
    }
    let is_status = document["kind"] == "Status"
        && document["apiVersion"] == "v1"
        && document["status"] == "Failure"
        && document["message"].is_string()
        && document["code"] == code.as_u16();
    if is_status {
        Ok(None)
    } else {
        Err(format!("{code}: {text}"))
    }
}

fn shown(ask: &Ask) -> String {
    let body = String::from_utf8_lossy(&ask.body);
    format!("{} {}\n{:?}\n{body}", ask.method, ask.path, ask.headers)
}

/// Checks that objects are stored, that kinds can be defined, and that the controllers work.
async fn check_alive(bench: &Bench, round: u64) {
    let namespace = format!("alive-{round}");
    let created = json!({"metadata": {"name": namespace}});
    let created = bench.post("/api/v1/namespaces", &created).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    let path = format!("/api/v1/namespaces/{namespace}");
    let maps = format!("{path}/configmaps");
    let created = bench.post(&maps, &json!({"metadata": {"name": "a"}})).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    assert_eq!(bench.get(&format!("{maps}/a")).await.code, StatusCode::OK);
    let plural = format!("alive{round}s");
    let mut defined = definition(&plural, &format!("Alive{round}"), "Cluster");
    defined["metadata"]["name"] = format!("{plural}.alive.dev").into();
    defined["spec"]["group"] = "alive.dev".into();
    let established = timeout(TIMEOUT, bench.define(&defined)).await;
    established.expect("definitions are looked at");
    bench.delete(&path).await;
    let gone = async {
        while bench.get(&path).await.code != StatusCode::NOT_FOUND {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TIMEOUT, gone)
        .await
        .expect("namespaces are emptied");
}
