//! The documents by which others check tokens of service accounts.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use http::StatusCode;
use serde_json::json;

use crate::access::{bench, builder, get_as};
use crate::bench::text;
use crate::tokens::{ISSUER, account, decoded, parts, token};

#[tokio::test(start_paused = true)]
async fn others_check_tokens_by_the_keys_of_the_server() {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    let bench = bench(builder().rbac()).await;
    account(&bench, "bot").await;
    let token = token(&bench, "bot", json!({})).await;
    let answer = get_as(&bench, &token, "/.well-known/openid-configuration").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.headers["cache-control"], "public, max-age=3600");
    let expected = format!(
        r#"{{"issuer":"{ISSUER}","jwks_uri":"https://127.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}}"#
    );
    assert_eq!(answer.text, expected);

    let answer = get_as(&bench, &token, "/openid/v1/jwks").await;
    assert_eq!(answer.headers["content-type"], "application/jwk-set+json");
    assert_eq!(answer.headers["cache-control"], "public, max-age=3600");
    let keys = answer.json();
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(1), "{keys}");
    let key = &keys["keys"][0];
    let [header, payload, signature] = parts(&token);
    let expected = json!({"alg": "ES256", "kid": key["kid"]}).to_string();
    assert_eq!(decoded(header), expected);
    let of_key = |member: &str| BASE64.decode(text(key, member)).expect("it is base64");
    let expected = json!({
        "use": "sig", "kty": "EC", "kid": key["kid"], "crv": "P-256", "alg": "ES256",
        "x": key["x"], "y": key["y"],
    });
    assert_eq!(*key, expected);
    let point = [vec![4], of_key("/x"), of_key("/y")].concat();
    let signature = BASE64.decode(signature).expect("it is base64");
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(format!("{header}.{payload}").as_bytes(), &signature)
        .expect("it is signed");
}

#[tokio::test(start_paused = true)]
async fn the_documents_are_read_as_on_a_genuine_server() {
    use http::Method;

    let bench = bench(builder().rbac()).await;
    let paths = bench.get("/").await.json();
    for (path, media_type) in [
        ("/.well-known/openid-configuration", "application/json"),
        ("/openid/v1/jwks", "application/jwk-set+json"),
    ] {
        let listed = paths["paths"].as_array().expect("a list");
        assert!(listed.contains(&path.into()), "{paths}");
        // The role is that of service accounts.
        get_as(&bench, "janes", path).await.fails(403, "Forbidden");
        for accepted in ["", "*/*", "text/html, */*", media_type] {
            let answer = bench
                .ask(Method::GET, path, &[("accept", accepted)], "")
                .await;
            assert_eq!(answer.code, StatusCode::OK, "{accepted}: {}", answer.text);
        }
        for refused in ["application/*", "garbage", "text/html"] {
            let answer = bench
                .ask(Method::GET, path, &[("accept", refused)], "")
                .await;
            let status = answer.fails(406, "NotAcceptable");
            let message = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
            assert_eq!(text(&status, "/message"), message);
        }
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            let answer = bench.ask(method, path, &[], "").await;
            answer.fails(405, "MethodNotAllowed");
        }
    }
    for path in ["/.well-known", "/openid", "/openid/v1", "/.well-known/x"] {
        assert_eq!(bench.get(path).await.code, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_documents_are_described_as_on_a_genuine_server() {
    let bench = bench(builder()).await;
    let index = bench.get("/openapi/v3").await.json();
    let documents = [
        (
            ".well-known/openid-configuration",
            "application/json",
            "getServiceAccountIssuerOpenIDConfiguration",
        ),
        (
            "openid/v1/jwks",
            "application/jwk-set+json",
            "getServiceAccountIssuerOpenIDKeyset",
        ),
    ];
    for (path, media_type, id) in documents {
        let url = text(&index["paths"][path], "/serverRelativeURL");
        assert!(
            url.starts_with(&format!("/openapi/v3/{path}?hash=")),
            "{url}"
        );
        let document = bench.get(url).await.json();
        let operation = &document["paths"][format!("/{path}/")]["get"];
        assert_eq!(text(operation, "/operationId"), id);
        let content = &operation["responses"]["200"]["content"][media_type];
        assert_eq!(content["schema"], serde_json::json!({"type": "string"}));
        assert!(document["components"]["schemas"].is_null(), "{document:#}");
    }
}
