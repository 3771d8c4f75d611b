//! Where others find out who issues tokens, and the keys.
//!
//! Source: `k8s.io/kubernetes/pkg/routes/openidmetadata.go`.

use serde_json::{Map, Value, json};

use super::frame::{frame, info};

/// The paths below `/openapi/v3/` of these documents.
pub(super) const PATHS: [&str; 2] = [".well-known/openid-configuration", "openid/v1/jwks"];

/// Returns the document at one of the paths.
pub(super) fn document(path: &str) -> Option<Value> {
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
    Some(frame(&info(), paths, Map::new()))
}
