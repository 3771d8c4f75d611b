//! A small HTTP client on the in-process service.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use lariat_cluster::{Cluster, ResponseBody};
use serde_json::{Value, json};
use tower_service::Service;

/// A cluster, and requests to it.
pub(crate) struct Bench {
    pub(crate) cluster: Cluster,
}

/// An answer whose body was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
    pub(crate) bytes: Bytes,
}

/// An open watch.
pub(crate) struct Watch {
    body: ResponseBody,
    unread: String,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with_history(1000).await
    }

    pub(crate) async fn with_history(changes: usize) -> Self {
        let cluster = Cluster::builder().history(changes).seed(1).start().await;
        Self {
            cluster: cluster.expect("a cluster without a socket starts"),
        }
    }

    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: impl Into<Bytes>,
    ) -> Answer {
        self.ask(method, path, &[("content-type", media)], body)
            .await
    }

    /// Sends a request with headers of its own.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.try_ask(method, path, headers, body)
            .await
            .expect("the connection holds")
    }

    /// Sends a request whose connection may break.
    pub(crate) async fn try_ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> std::io::Result<Answer> {
        let request = request(method, path, headers, body.into());
        let (parts, body) = self.cluster.service().call(request).await?.into_parts();
        let bytes = body.collect().await?.to_bytes();
        Ok(Answer {
            code: parts.status,
            headers: parts.headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
        })
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, "", "").await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Answer {
        self.call(Method::POST, path, "application/json", object.to_string())
            .await
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> Answer {
        self.call(Method::PUT, path, "application/json", object.to_string())
            .await
    }

    pub(crate) async fn merge(&self, path: &str, patch: Value) -> Answer {
        self.call(
            Method::PATCH,
            path,
            "application/merge-patch+json",
            patch.to_string(),
        )
        .await
    }

    pub(crate) async fn json_patch(&self, path: &str, patch: Value) -> Answer {
        self.call(
            Method::PATCH,
            path,
            "application/json-patch+json",
            patch.to_string(),
        )
        .await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, path, "", "").await
    }

    /// Creates a ConfigMap in namespace `default`.
    pub(crate) async fn config_map(&self, name: &str, labels: Value) -> Value {
        let object = json!({"metadata": {"name": name, "labels": labels}, "data": {"a": "1"}});
        let answer = self.post(CONFIG_MAPS, &object).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
        answer.json()
    }

    /// Returns the names in a list.
    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        let list = self.get(path).await.json();
        let items = list["items"].as_array().expect("a list has items");
        items
            .iter()
            .map(|item| text(item, "/metadata/name").to_owned())
            .collect()
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        self.watch_with(path, &[]).await
    }

    pub(crate) async fn watch_with(&self, path: &str, headers: &[(&str, &str)]) -> Watch {
        let request = request(Method::GET, path, headers, Bytes::new());
        let response = self.cluster.service().call(request).await;
        let response = response.expect("the connection holds");
        assert_eq!(response.status(), StatusCode::OK);
        Watch {
            body: response.into_body(),
            unread: String::new(),
        }
    }

    /// Creates a CustomResourceDefinition and waits until its kind is served.
    pub(crate) async fn define(&self, definition: &Value) {
        let answer = self.post(DEFINITIONS, definition).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
        self.wait_established(text(definition, "/metadata/name"))
            .await;
    }

    /// Waits until a CRD is served.
    pub(crate) async fn wait_established(&self, name: &str) {
        let mut watch = self
            .watch(&format!(
                "{DEFINITIONS}?watch=1&fieldSelector=metadata.name={name}"
            ))
            .await;
        loop {
            let (_, object) = watch.event().await;
            let conditions = object["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            if conditions
                .iter()
                .any(|c| c["type"] == "Established" && c["status"] == "True")
            {
                return;
            }
        }
    }
}

fn request(
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(Full::new(body))
        .expect("a request of the test is well formed")
}

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Returns an object with more members.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// Returns the text at a pointer, or fails with the whole document.
pub(crate) fn text<'a>(document: &'a Value, pointer: &str) -> &'a str {
    document
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer} in {document:#}"))
}

pub(crate) fn version(document: &Value) -> u64 {
    text(document, "/metadata/resourceVersion")
        .parse()
        .expect("a version is a number")
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    /// Checks that this is a failure of a kind, and returns its Status.
    pub(crate) fn fails(&self, code: u16, reason: &str) -> Value {
        assert_eq!(self.code.as_u16(), code, "{}", self.text);
        let status = self.json();
        assert_eq!(
            status["reason"].as_str().unwrap_or_default(),
            reason,
            "{status:#}"
        );
        assert_eq!(
            (&status["kind"], &status["code"]),
            (&json!("Status"), &json!(code))
        );
        status
    }
}

impl Watch {
    /// Reads the next line, `None` at the end of the stream.
    pub(crate) async fn line(&mut self) -> Result<Option<String>, std::io::Error> {
        loop {
            if let Some((line, rest)) = self.unread.split_once('\n') {
                let line = line.to_owned();
                self.unread = rest.to_owned();
                return Ok(Some(line));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    let data = frame?.into_data().expect("a watch has no trailers");
                    self.unread
                        .push_str(std::str::from_utf8(&data).expect("JSON is UTF-8"));
                }
            }
        }
    }

    /// Returns what came of a line that was cut off.
    pub(crate) fn rest(&self) -> &str {
        &self.unread
    }

    /// Reads the next piece as it is.
    pub(crate) async fn frame(&mut self) -> Bytes {
        let frame = self.body.frame().await.expect("the watch goes on");
        let frame = frame.expect("the watch goes on");
        frame.into_data().expect("a watch has no trailers")
    }

    /// Reads the next event: its type and its object.
    pub(crate) async fn event(&mut self) -> (String, Value) {
        let line = self
            .line()
            .await
            .expect("the watch goes on")
            .expect("the watch goes on");
        let event: Value = serde_json::from_str(&line).expect("a line is JSON");
        (text(&event, "/type").to_owned(), event["object"].clone())
    }

    /// Reads the next event as `TYPE name`.
    pub(crate) async fn short(&mut self) -> String {
        let (event, object) = self.event().await;
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or("-");
        format!("{event} {name}")
    }

    /// Reads the next few events as `TYPE name`.
    pub(crate) async fn shorts(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.short().await);
        }
        events
    }
}
