//! Writes to the API server: to the embedded one without a socket, or to a genuine one.

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::request::Builder;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kube::client::Body;
use lariat_cluster::ClusterService;
use serde_json::{Value, json};
use tower_service::Service;

/// What is accepted: of an answer the metadata are enough.
const OBJECT: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Writes to the embedded server go out from this many tasks: as many as the machine has processors to spare.
const TASKS: usize = 2;

/// A genuine server spends most of a write waiting.
const GENUINE_TASKS: usize = 16;

#[derive(Clone)]
pub(super) enum Api {
    Embedded(ClusterService),
    Genuine(kube::Client),
}

impl Api {
    /// Returns from how many tasks writes are to go out.
    pub(super) fn tasks(&self) -> usize {
        match self {
            Self::Embedded(_) => TASKS,
            Self::Genuine(_) => GENUINE_TASKS,
        }
    }

    pub(super) async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({"metadata": {"name": name}});
        self.send(Method::POST, "/api/v1/namespaces", &namespace)
            .await?;
        Ok(())
    }

    /// Sends a write of one object that must succeed; returns what answers it.
    pub(super) async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Bytes> {
        let body = Bytes::from(body.to_string());
        let (status, answer) = self.exchange(method, path, OBJECT, body).await?;
        succeeded(path, status, answer)
    }

    /// Lists what is at a path.
    pub(super) async fn list(&self, path: &str) -> Result<Bytes> {
        let answer = self.exchange(Method::GET, path, LIST, Bytes::new());
        let (status, answer) = answer.await?;
        succeeded(path, status, answer)
    }

    /// Deletes the object at a path.
    pub(super) async fn delete(&self, path: &str) -> Result<()> {
        let answer = self.exchange(Method::DELETE, path, "application/json", Bytes::new());
        let (status, answer) = answer.await?;
        succeeded(path, status, answer)?;
        Ok(())
    }

    /// Deletes the objects of a list, or one batch; returns whether it deleted any.
    pub(super) async fn delete_all(&self, path: &str) -> Result<bool> {
        let answer = self.exchange(Method::DELETE, path, LIST, Bytes::new());
        Ok(answer.await?.0.is_success())
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes)> {
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request: Builder = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .header("accept", accept);
        Ok(match self {
            // Without a socket, so that writes cost the server no parsing of HTTP while subjects read from it.
            Self::Embedded(service) => {
                let request = request.body(Full::new(body))?;
                let response = service.clone().call(request).await?;
                let status = response.status();
                (status, response.into_body().collect().await?.to_bytes())
            }
            Self::Genuine(client) => {
                let response = client.send(request.body(Body::from(body))?).await?;
                let status = response.status();
                (status, response.into_body().collect().await?.to_bytes())
            }
        })
    }
}

fn succeeded(path: &str, status: StatusCode, answer: Bytes) -> Result<Bytes> {
    let text = || String::from_utf8_lossy(&answer).trim_end().to_owned();
    ensure!(status.is_success(), "{path}: {status}: {}", text());
    Ok(answer)
}
