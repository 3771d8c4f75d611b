//! Creation and update of objects.

use std::collections::HashMap;

use anyhow::{Context, Result, anyhow};
use http::{Method, Request};
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Api, Client, Error};
use lariat_cluster::testing::wait_for_condition;
use serde::Deserialize;
use serde_json::Value;

use super::document::Document;

/// The namespace of objects without one.
const NAMESPACE: &str = "default";

/// The kinds to create before the rest.
const DEFINITION: &str = "CustomResourceDefinition";

/// Creates or updates the objects: CRDs, then namespaces, then the rest, each in order.
pub(crate) async fn apply(client: &Client, mut documents: Vec<Document>) -> Result<()> {
    if documents.is_empty() {
        return Ok(());
    }
    // A stable sort: within a rank the objects stay in the order of the files.
    documents.sort_by_key(rank);
    let first = documents.partition_point(|document| rank(document) == 0);
    let rest = documents.split_off(first);
    let mut applier = Applier {
        client,
        resources: HashMap::new(),
    };
    for document in &documents {
        applier
            .put(document)
            .await
            .with_context(|| document.title())?;
    }
    // All are created before the first is waited for, so that they become established side by side.
    for document in &documents {
        let served = established(client, document.text("/metadata/name")).await;
        served.with_context(|| document.title())?;
    }
    for document in &rest {
        applier
            .put(document)
            .await
            .with_context(|| document.title())?;
    }
    eprintln!("objects from files: {}", documents.len() + rest.len());
    Ok(())
}

fn rank(document: &Document) -> u8 {
    match document.text("/kind") {
        DEFINITION => 0,
        "Namespace" => 1,
        _ => 2,
    }
}

async fn established(client: &Client, name: &str) -> Result<()> {
    let definitions = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: DEFINITION.to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api = Api::<DynamicObject>::all_with(client.clone(), &definitions);
    Ok(wait_for_condition(&api, name, "Established")
        .await
        .map(drop)?)
}

struct Applier<'a> {
    client: &'a Client,
    /// What the server serves, by group and version.
    resources: HashMap<String, Vec<Served>>,
}

/// A resource in discovery.
#[derive(Debug, Clone, Deserialize)]
struct Served {
    name: String,
    kind: String,
    namespaced: bool,
}

#[derive(Deserialize)]
struct ServedList {
    resources: Vec<Served>,
}

impl Applier<'_> {
    /// Creates the object, or updates the existing one.
    async fn put(&mut self, document: &Document) -> Result<()> {
        let all = self.path(document).await?;
        // Created first, because most objects are new.
        match self.send(Method::POST, &all, &document.object).await {
            // By the reason, since 409 is a `Conflict` as well.
            Err(Error::Api(status)) if status.reason == "AlreadyExists" => {}
            other => return other.map_err(readable),
        }
        // A patch keeps other fields, such as those that the server set.
        let path = format!("{all}/{}", document.text("/metadata/name"));
        let patched = self.send(Method::PATCH, &path, &document.object).await;
        patched.map_err(readable)
    }

    /// Returns the path of the collection the object belongs to.
    async fn path(&mut self, document: &Document) -> Result<String> {
        let (version, kind) = (document.text("/apiVersion"), document.text("/kind"));
        let root = if version.contains('/') {
            format!("/apis/{version}")
        } else {
            format!("/api/{version}")
        };
        let served = self.served(version, &root).await?;
        let resource = served
            .iter()
            .find(|each| each.kind == kind && !each.name.contains('/'))
            .ok_or_else(|| anyhow!("{version} {kind} is not served; is its CRD missing?"))?;
        let namespace = match document.text("/metadata/namespace") {
            "" => NAMESPACE,
            namespace => namespace,
        };
        Ok(if resource.namespaced {
            format!("{root}/namespaces/{namespace}/{}", resource.name)
        } else {
            format!("{root}/{}", resource.name)
        })
    }

    async fn served(&mut self, version: &str, root: &str) -> Result<&[Served]> {
        if !self.resources.contains_key(version) {
            let request = Request::get(root).body(Vec::new())?;
            let served = match self.client.request::<ServedList>(request).await {
                Ok(list) => list.resources,
                // Nothing of this group and version is served.
                Err(Error::Api(status)) if status.code == 404 => Vec::new(),
                Err(error) => return Err(readable(error)),
            };
            // A missing group is kept as well: the CRDs were established before this asked for the first time.
            self.resources.insert(version.to_owned(), served);
        }
        Ok(self.resources.get(version).map_or(&[], Vec::as_slice))
    }

    async fn send(&self, method: Method, path: &str, object: &Value) -> Result<(), Error> {
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let failed = kube::core::request::Error::BuildRequest;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", media)
            .body(object.to_string().into_bytes())
            .map_err(|error| Error::BuildRequest(failed(error)))?;
        self.client.request::<Value>(request).await.map(drop)
    }
}

/// Removes redundant parts of kube's error.
fn readable(error: Error) -> anyhow::Error {
    match error {
        Error::Api(status) => anyhow!("{}", status.message),
        other => anyhow!("{}", lariat_core::describe(&other)),
    }
}
