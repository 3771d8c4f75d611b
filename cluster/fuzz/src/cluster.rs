//! Requests to a cluster in this process.

use std::cell::RefCell;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use lariat_cluster::{Cluster, Snapshot};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

pub(crate) const JSON: &str = "application/json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// How many inputs one cluster serves, so that what it remembers stays small.
const MOST_INPUTS: usize = 2000;

/// A cluster with a namespace `default`, ten ConfigMaps `c0` to `c9`, and a custom kind.
pub(crate) struct Tested {
    runtime: Runtime,
    cluster: Cluster,
    begun: Snapshot,
    inputs: usize,
}

/// An answer of the cluster.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

thread_local! {
    static TESTED: RefCell<Option<Tested>> = const { RefCell::new(None) };
}

/// Works with a cluster that holds what every input finds.
pub(crate) fn with_cluster<T>(work: impl FnOnce(&Tested) -> T) -> T {
    TESTED.with_borrow_mut(|kept| {
        let mut tested = kept
            .take()
            .filter(|tested| tested.inputs < MOST_INPUTS)
            .unwrap_or_else(Tested::open);
        tested.inputs += 1;
        // A panic leaves none, so the next input gets a cluster of its own.
        let result = work(&tested);
        *kept = Some(tested);
        result
    })
}

impl Tested {
    fn open() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.expect("a runtime without I/O starts");
        let cluster = Cluster::builder()
            .history(2000)
            .seed(1)
            .admin(false)
            .start();
        let cluster = runtime
            .block_on(cluster)
            .expect("a cluster without a socket starts");
        let mut tested = Self {
            begun: cluster.snapshot(),
            runtime,
            cluster,
            inputs: 0,
        };
        tested.fill();
        tested.begun = tested.cluster.snapshot();
        tested
    }

    fn fill(&self) {
        for index in 0..10 {
            let object = json!({"metadata": {"name": format!("c{index}")}});
            let path = "/api/v1/namespaces/default/configmaps";
            let answer = self.send(Method::POST, path, JSON, object.to_string().as_bytes());
            assert_eq!(answer.code, 201, "{}", answer.body);
        }
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let answer = self.send(
            Method::POST,
            path,
            JSON,
            definition().to_string().as_bytes(),
        );
        assert_eq!(answer.code, 201, "{}", answer.body);
        // Kinds are served once a controller of the cluster has seen their definition.
        let served = || {
            self.get("/apis/demo.dev/v1/namespaces/default/widgets")
                .code
                == 200
        };
        while !served() {
            self.settle();
        }
    }

    /// Brings all objects back to what every input finds.
    pub(crate) fn reset(&self) {
        let restored = self.runtime.block_on(self.cluster.restore(&self.begun));
        restored.expect("a cluster without a data file is restored");
    }

    /// Lets the controllers of the cluster work.
    fn settle(&self) {
        let pause = std::time::Duration::from_millis(1);
        self.runtime
            .block_on(async { tokio::time::sleep(pause).await });
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, "", b"")
    }

    /// Sends a request, and checks that its answer is not that of a request that panicked.
    pub(crate) fn send(&self, method: Method, path: &str, media: &str, body: &[u8]) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media);
        let request = request.body(Full::new(Bytes::copy_from_slice(body)));
        let request = request.expect("the path is one");
        let answer = self.runtime.block_on(async {
            let response = self
                .cluster
                .service()
                .call(request)
                .await
                .expect("it answers");
            let (parts, body) = response.into_parts();
            let body = body.collect().await.expect("the body is whole").to_bytes();
            // Paths that nothing is served at are answered with a text.
            let text = || String::from_utf8_lossy(&body).into_owned();
            let body = serde_json::from_slice(&body).unwrap_or_else(|_| text().into());
            Answer {
                code: parts.status.as_u16(),
                body,
            }
        });
        // The other errors of the server are answers of a genuine one, too.
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(
            !message.contains("the server has a defect"),
            "{}",
            answer.body
        );
        if answer.code >= 400 && !answer.body.is_string() {
            assert_eq!(answer.body["kind"], "Status", "a failure is a Status");
            assert_eq!(answer.body["code"], answer.code, "{}", answer.body);
        }
        answer
    }
}

/// A custom kind with every form of list and map.
fn definition() -> Value {
    let text = json!({"type": "string"});
    let item = json!({"type": "object", "required": ["k"], "properties": {
        "k": text, "v": {"type": "integer"}, "w": text,
    }});
    json!({
        "metadata": {"name": "widgets.demo.dev"},
        "spec": {
            "group": "demo.dev", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "n": {"type": "integer"}, "name": text,
                    "map": {"type": "object", "additionalProperties": text},
                    "whole": {"type": "object", "x-kubernetes-map-type": "atomic",
                        "additionalProperties": text},
                    "list": {"type": "array", "items": text},
                    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
                    "items": {"type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"], "items": item},
                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }}}],
        },
    })
}
