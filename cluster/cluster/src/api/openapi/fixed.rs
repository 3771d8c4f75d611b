//! Documents about paths without objects: discovery, the version of the server, and the issuer of tokens.

use lariat_apimachinery::KUBERNETES;
use lariat_apimachinery::kinds::Catalog;
use lariat_apimachinery::schema::describe::Describer;
use serde_json::{Map, Value, json};

use super::names::{camel_case, shared_name};
use super::operation::{ApiOperation, Path, Sends, Subject};
use super::paths;
use crate::descriptions;

/// The paths below `/openapi/v3/` of the documents about the issuer of tokens.
// Source: `k8s.io/kubernetes/pkg/routes/openidmetadata.go`.
pub(super) const OPENID_PATHS: [&str; 2] = [".well-known/openid-configuration", "openid/v1/jwks"];

/// Returns whether there is a document at a path, beside those of versions.
pub(super) fn has(catalog: &Catalog, path: &str) -> bool {
    match path.strip_prefix("apis/") {
        Some(group) => groups(catalog).any(|each| each == group),
        None => matches!(path, "api" | "apis" | "version"),
    }
}

/// Iterates over the groups with a document: those of CRDs have none.
pub(super) fn groups(catalog: &Catalog) -> impl Iterator<Item = &str> {
    let groups = catalog.groups().into_iter();
    groups.filter(move |group| {
        let versions = catalog.versions(group).into_iter();
        let mut resources = versions.flat_map(|version| catalog.resources(group, version));
        resources.any(|resource| !resource.rules.custom)
    })
}

/// Returns the document at a path.
pub(super) fn document(path: &str) -> Value {
    let (found, kind) = of_path(path);
    let mut describer = Describer::new();
    describer.types(&[kind]);
    let mut schemas = describer.finish();
    descriptions::add(&mut schemas);
    let mut paths = Map::new();
    paths.insert(found.path.clone(), paths::describe(&found));
    v3(&info(), paths, schemas)
}

/// Returns the document about the issuer at one of these paths.
pub(super) fn openid(path: &str) -> Option<Value> {
    let (id, tag, media_type, description) = match path {
        ".well-known/openid-configuration" => (
            "getServiceAccountIssuerOpenIDConfiguration",
            "WellKnown",
            "application/json",
            "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
        ),
        "openid/v1/jwks" => (
            "getServiceAccountIssuerOpenIDKeyset",
            "openid",
            "application/jwk-set+json",
            "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
        ),
        _ => return None,
    };
    let responses = json!({
        "200": {"description": "OK", "content": {media_type: {"schema": {"type": "string"}}}},
        "401": {"description": "Unauthorized"},
    });
    let get = json!({
        "tags": [tag], "description": description, "operationId": id, "responses": responses,
    });
    let paths = Map::from_iter([(format!("/{path}/"), json!({"get": get}))]);
    Some(v3(&info(), paths, Map::new()))
}

/// Returns a v3 document with paths and schemas.
pub(super) fn v3(info: &Value, paths: Map<String, Value>, schemas: Map<String, Value>) -> Value {
    let token = json!({
        "type": "apiKey", "description": "Bearer Token authentication",
        "name": "authorization", "in": "header",
    });
    let mut document = json!({
        "openapi": "3.0.0", "info": info,
        "components": {"securitySchemes": {"BearerToken": token}},
    });
    document["paths"] = paths.into();
    if !schemas.is_empty() {
        document["components"]["schemas"] = schemas.into();
    }
    document
}

pub(super) fn info() -> Value {
    json!({"title": "Kubernetes", "version": KUBERNETES})
}

/// Returns all paths, and the types of their answers.
pub(super) fn all(catalog: &Catalog) -> Vec<(Path, &'static str)> {
    let groups = groups(catalog).map(|group| of_path(&format!("apis/{group}")));
    let others = ["api", "apis", "version"].into_iter().map(of_path);
    others.chain(groups).collect()
}

fn of_path(path: &str) -> (Path, &'static str) {
    let (kind, id, tag, description) = match path.strip_prefix("apis/") {
        Some(group) => {
            // The ids of Go's operations do not have the suffix, as in `getRbacAuthorizationAPIGroup`.
            let group = group.trim_end_matches(".k8s.io");
            (
                "meta.v1.APIGroup",
                format!("get{}APIGroup", camel_case(group, true)),
                camel_case(group, false),
                "get information of a group",
            )
        }
        None => match path {
            "api" => (
                "meta.v1.APIVersions",
                "getCoreAPIVersions".to_owned(),
                "core".to_owned(),
                "get available API versions",
            ),
            "apis" => (
                "meta.v1.APIGroupList",
                "getAPIVersions".to_owned(),
                "apis".to_owned(),
                "get available API versions",
            ),
            _ => (
                "version.Info",
                "getCodeVersion".to_owned(),
                "version".to_owned(),
                "get the version information for this server",
            ),
        },
    };
    let answers = match kind.strip_prefix("meta.v1.") {
        Some(kind) => shared_name(kind),
        None => format!("io.k8s.apimachinery.pkg.{kind}"),
    };
    let operation = operation(id, tag, description, answers);
    (Path::new(format!("/{path}/"), vec![operation]), kind)
}

/// Returns the path that lists the resources of a version.
pub(super) fn of_version(group: &str, version: &str) -> Path {
    let (path, name) = match group {
        "" => (format!("/api/{version}/"), "core"),
        group => (
            format!("/apis/{group}/{version}/"),
            group.trim_end_matches(".k8s.io"),
        ),
    };
    let (upper, lower) = (camel_case(name, true), camel_case(name, false));
    let id = format!("get{upper}{}APIResources", camel_case(version, true));
    let tag = format!("{lower}_{version}");
    let answers = shared_name("APIResourceList");
    let operation = operation(id, tag, "get available resources", answers);
    Path::new(path, vec![operation])
}

fn operation(id: String, tag: String, description: &str, answers: String) -> ApiOperation {
    ApiOperation {
        method: "get",
        subject: if tag == "version" {
            Subject::Version
        } else {
            Subject::Discovery
        },
        about: None,
        id,
        tag,
        description: description.to_owned(),
        sends: Sends::Nothing,
        answers,
        parameters: Vec::new(),
    }
}
