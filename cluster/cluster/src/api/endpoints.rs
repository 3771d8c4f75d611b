//! Paths that are not of resources: discovery, OpenAPI, health and the version.

use http::{Method, StatusCode};
use lariat_apimachinery::kinds::{Catalog, Resource};
use serde_json::json;

use super::discovery;
use super::incoming::IncomingRequest;
use super::{etag, health, openapi, openid};
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Range;
use crate::wire::negotiate::{OBJECT_TYPES, Shape, accepts};
use crate::wire::reply::Reply;
use crate::wire::route::Route;

const JSON: &str = "application/json";

/// Answers a request that is not about objects.
pub(crate) fn answer(server: &Server, incoming: &IncomingRequest) -> Result<Reply, ApiError> {
    let catalog = server.kinds.catalog();
    if *incoming.method() != Method::GET && is_read_only(&catalog, &incoming.route) {
        return Err(ApiError::method_not_allowed());
    }
    match &incoming.route {
        Route::CoreVersions => return versions(&catalog, incoming, true),
        Route::Groups => return versions(&catalog, incoming, false),
        Route::OpenApiIndex => return Ok(openapi::answer_index(server, &catalog)),
        Route::OpenApi(path) => return Ok(openapi::answer(server, &catalog, incoming, path)),
        Route::OpenApiV2 => return Ok(openapi::answer_v2(server, &catalog, incoming)),
        Route::Version if accepts(incoming.accept(), JSON) => return Ok(discovery::version()),
        Route::Version => return Err(ApiError::not_acceptable(JSON)),
        Route::Issuer => return openid::configuration(server, incoming),
        Route::KeySet => return openid::key_set(server, incoming),
        Route::Health { endpoint, check } => {
            return health::health(endpoint, check, &incoming.query);
        }
        // What is in one form alone does not look at what is accepted.
        Route::Root => return Ok(root(server, &catalog)),
        Route::Metrics => return Ok(Reply::text(StatusCode::OK, metrics(server))),
        Route::Group(_) | Route::Resources { .. } => {}
        _ => return Err(ApiError::page_not_found()),
    }
    // What is not there has no route that could look at what is accepted.
    let reply = match &incoming.route {
        Route::Group(group) => discovery::group(&catalog, group)?,
        Route::Resources { group, version } => discovery::resources(&catalog, group, version)?,
        _ => return Err(ApiError::page_not_found()),
    };
    if incoming.format()?.shape != Shape::Whole {
        return Err(ApiError::not_acceptable(OBJECT_TYPES));
    }
    Ok(reply)
}

/// Returns whether a document is served for GET alone; the handlers of other paths do not look at the method.
///
/// Source: the routes in `k8s.io/apiserver/pkg/endpoints/discovery`; those of groups and of CRDs are plain handlers.
fn is_read_only(catalog: &Catalog, route: &Route) -> bool {
    match route {
        Route::CoreVersions | Route::Version => true,
        Route::Resources { group, version } => {
            let mut resources = catalog.resources(group, version);
            resources.any(|resource| !resource.rules.custom)
        }
        _ => false,
    }
}

/// Answers `/api` and `/apis`, in whichever of the two forms a client prefers.
fn versions(catalog: &Catalog, incoming: &IncomingRequest, core: bool) -> Result<Reply, ApiError> {
    if discovery::prefers_aggregated(incoming.accept(), incoming.offers)? {
        let document = discovery::aggregated(catalog, core);
        let known = incoming.known_tags();
        return Ok(etag::tagged(document, discovery::AGGREGATED, known));
    }
    Ok(if core {
        discovery::core_versions()
    } else {
        discovery::groups(catalog)
    })
}

/// Lists the paths there are.
fn root(server: &Server, catalog: &Catalog) -> Reply {
    let has_keys = server.access.tokens.signer().verifies();
    let of_keys = |path: &str| has_keys.then(|| path.to_owned());
    let mut paths: Vec<String> = of_keys(openid::CONFIGURATION).into_iter().collect();
    paths.extend(["/api", "/api/v1", "/apis", "/apis/"].map(str::to_owned));
    let mut groups = catalog.groups();
    groups.sort_unstable();
    for group in groups {
        paths.push(format!("/apis/{group}"));
        let versions = catalog.versions(group).into_iter();
        paths.extend(versions.map(|version| format!("/apis/{group}/{version}")));
    }
    let others = [
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
    ];
    paths.extend(others.map(str::to_owned));
    paths.extend(of_keys(openid::KEY_SET));
    paths.extend(["/readyz", "/version"].map(str::to_owned));
    Reply::json(StatusCode::OK, json!({"paths": paths}).to_string())
}

fn count(server: &Server, resource: &Resource) -> usize {
    let page = server.store.range(resource.table, &Range::default());
    page.map_or(0, |page| page.objects.len())
}

/// Writes a few numbers in the form Prometheus reads.
fn metrics(server: &Server) -> String {
    let mut text = String::from(
        "# HELP apiserver_storage_objects [STABLE] Number of stored objects at the time of last \
         check split by kind.\n# TYPE apiserver_storage_objects gauge\n",
    );
    let catalog = server.kinds.catalog();
    // Reviews are answered and never stored.
    for resource in catalog.each_table().filter(|each| !each.rules.review) {
        let (name, count) = (resource.qualified(), count(server, resource));
        text.push_str(&format!(
            "apiserver_storage_objects{{resource=\"{name}\"}} {count}\n"
        ));
    }
    text
}
