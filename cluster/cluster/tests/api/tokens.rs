//! Tokens of service accounts: their claims, and until when they are good.
//!
//! The texts are those of kube-apiserver v1.36.2.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Duration, advance};

use crate::access::{bench, builder, get_as};
use crate::bench::{Bench, text};

const NAMESPACE: &str = "/api/v1/namespaces/default";
const NODES: &str = "/api/v1/nodes";
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const INVALIDATED: &str = "service account token has been invalidated";

async fn create(bench: &Bench, path: &str, object: Value) -> String {
    let answer = bench.post(path, &object).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    text(&answer.json(), "/metadata/uid").to_owned()
}

pub(crate) async fn account(bench: &Bench, name: &str) -> String {
    let path = format!("{NAMESPACE}/serviceaccounts");
    create(bench, &path, json!({"metadata": {"name": name}})).await
}

async fn secret(bench: &Bench, name: &str) -> String {
    let path = format!("{NAMESPACE}/secrets");
    create(bench, &path, json!({"metadata": {"name": name}})).await
}

async fn pod(bench: &Bench, name: &str, node: Option<&str>) -> String {
    let object = json!({"metadata": {"name": name}, "spec": {
        "serviceAccountName": "bot", "nodeName": node, "containers": [{"name": "c", "image": "i"}],
    }});
    create(bench, &format!("{NAMESPACE}/pods"), object).await
}

async fn node(bench: &Bench, name: &str) -> String {
    create(bench, NODES, json!({"metadata": {"name": name}})).await
}

async fn delete(bench: &Bench, path: &str) {
    let answer = bench.delete(&format!("{path}?gracePeriodSeconds=0")).await;
    assert_eq!(answer.code, StatusCode::OK, "{}", answer.text);
}

async fn request(bench: &Bench, name: &str, spec: Value) -> Value {
    let path = format!("{NAMESPACE}/serviceaccounts/{name}/token");
    let answer = bench.post(&path, &json!({"spec": spec})).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    answer.json()
}

pub(crate) async fn token(bench: &Bench, name: &str, spec: Value) -> String {
    let answer = request(bench, name, spec).await;
    text(&answer, "/status/token").to_owned()
}

async fn bound(bench: &Bench, kind: &str, name: &str) -> String {
    let reference = json!({"kind": kind, "apiVersion": "v1", "name": name});
    token(bench, "bot", json!({"boundObjectRef": reference})).await
}

async fn review(bench: &Bench, token: &str, audiences: &[&str]) -> Value {
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = json!({"spec": {"token": token, "audiences": audiences}});
    bench.post(path, &review).await.json()["status"].clone()
}

async fn check_good(bench: &Bench, token: &str) {
    let status = review(bench, token, &[]).await;
    assert_eq!(status["authenticated"], true, "{status}");
}

async fn check_refused(bench: &Bench, token: &str, reason: &str) {
    let error = match reason {
        "" => "invalid bearer token".to_owned(),
        reason => format!("[invalid bearer token, {reason}]"),
    };
    let status = review(bench, token, &[]).await;
    assert_eq!(status, json!({"user": {}, "error": error}));
    let answer = get_as(bench, token, &format!("{NAMESPACE}/configmaps")).await;
    answer.fails(401, "Unauthorized");
}

pub(crate) fn parts(token: &str) -> [&str; 3] {
    let parts: Vec<&str> = token.split('.').collect();
    parts.try_into().expect("three parts")
}

pub(crate) fn decoded(part: &str) -> String {
    let bytes = BASE64.decode(part).expect("it is base64");
    String::from_utf8(bytes).expect("it is text")
}

fn claims(token: &str) -> Value {
    serde_json::from_str(&decoded(parts(token)[1])).expect("it is JSON")
}

#[tokio::test(start_paused = true)]
async fn claims_are_those_of_a_genuine_token() {
    let bench = bench(builder().rbac()).await;
    let uid = account(&bench, "bot").await;
    let answer = request(&bench, "bot", json!({})).await;
    let token = text(&answer, "/status/token");
    let claims = claims(token);
    let (issued, id) = (claims["iat"].as_i64().expect("a number"), &claims["jti"]);
    // As text: the members are in Go's order.
    let expected = format!(
        r#"{{"aud":["{ISSUER}"],"exp":{},"iat":{issued},"iss":"{ISSUER}","jti":{id},"kubernetes.io":{{"namespace":"default","serviceaccount":{{"name":"bot","uid":"{uid}"}}}},"nbf":{issued},"sub":"system:serviceaccount:default:bot"}}"#,
        issued + 3600
    );
    assert_eq!(decoded(parts(token)[1]), expected);
    let status = review(&bench, token, &[]).await;
    let id = format!("JTI={}", text(&claims, "/jti"));
    let expected = json!({"authenticated": true, "audiences": [ISSUER], "user": {
        "username": "system:serviceaccount:default:bot", "uid": uid,
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [id]},
    }});
    assert_eq!(status, expected);
}

#[tokio::test(start_paused = true)]
async fn claims_name_what_a_token_is_bound_to() {
    let bench = bench(builder().rbac()).await;
    let account = json!({"name": "bot", "uid": account(&bench, "bot").await});
    let here = json!({"name": "here", "uid": node(&bench, "here").await});
    let secret = json!({"name": "s", "uid": secret(&bench, "s").await});
    let free = json!({"name": "free", "uid": pod(&bench, "free", None).await});
    let placed = json!({"name": "placed", "uid": pod(&bench, "placed", Some("here")).await});
    let lost = json!({"name": "lost", "uid": pod(&bench, "lost", Some("gone")).await});
    let (namespace, gone) = ("default", json!({"name": "gone"}));
    for (kind, name, expected) in [
        ("Secret", "s", json!({"secret": secret})),
        ("Pod", "free", json!({"pod": free})),
        ("Pod", "placed", json!({"node": here, "pod": placed})),
        ("Pod", "lost", json!({"node": gone, "pod": lost})),
        ("Node", "here", json!({"node": here})),
    ] {
        let token = bound(&bench, kind, name).await;
        let mut expected = expected;
        expected["namespace"] = namespace.into();
        expected["serviceaccount"] = account.clone();
        assert_eq!(claims(&token)["kubernetes.io"], expected);
        let status = review(&bench, &token, &[]).await;
        let mut extra = status["user"]["extra"].clone();
        let extra = extra.as_object_mut().expect("it has an id");
        extra.remove("authentication.kubernetes.io/credential-id");
        let mut reported = serde_json::Map::new();
        for kind in ["node", "pod"] {
            for part in ["name", "uid"] {
                if let Some(value) = expected[kind].get(part) {
                    reported.insert(
                        format!("authentication.kubernetes.io/{kind}-{part}"),
                        json!([value]),
                    );
                }
            }
        }
        assert_eq!(*extra, reported, "{kind} {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_of_a_pod_that_no_client_asked_for_is_good_for_a_year() {
    let bench = bench(builder().rbac()).await;
    account(&bench, "bot").await;
    pod(&bench, "p", None).await;
    let reference = json!({"kind": "Pod", "apiVersion": "v1", "name": "p"});
    let spec = json!({"expirationSeconds": 3607, "boundObjectRef": reference});
    let answer = request(&bench, "bot", spec).await;
    let said = claims(text(&answer, "/status/token"));
    let issued = said["iat"].as_i64().expect("a number");
    assert_eq!(said["exp"], issued + 365 * 24 * 60 * 60);
    assert_eq!(said["kubernetes.io"]["warnafter"], issued + 3607);
    assert_eq!(answer["spec"]["expirationSeconds"], 3607);
    // Not for others, and not without a Pod.
    let other = json!({"expirationSeconds": 3607, "boundObjectRef": reference, "audiences": ["x"]});
    for spec in [other, json!({"expirationSeconds": 3607})] {
        let said = claims(&token(&bench, "bot", spec).await);
        assert_eq!(said["kubernetes.io"]["warnafter"], Value::Null);
        assert_eq!(
            said["exp"].as_i64(),
            said["iat"].as_i64().map(|at| at + 3607)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn reviews_tell_that_the_account_has_gone() {
    let bench = bench(builder().rbac()).await;
    let old = account(&bench, "bot").await;
    let token = token(&bench, "bot", json!({})).await;
    check_good(&bench, &token).await;
    let path = format!("{NAMESPACE}/serviceaccounts/bot");
    delete(&bench, &path).await;
    check_refused(&bench, &token, "serviceaccounts \"bot\" not found").await;
    let new = account(&bench, "bot").await;
    let reason = format!("service account UID ({new}) does not match claim ({old})");
    check_refused(&bench, &token, &reason).await;
}

#[tokio::test(start_paused = true)]
async fn reviews_tell_that_what_a_token_is_bound_to_has_gone() {
    let bench = bench(builder().rbac()).await;
    account(&bench, "bot").await;
    node(&bench, "n").await;
    pod(&bench, "placed", Some("n")).await;
    let placed = bound(&bench, "Pod", "placed").await;
    delete(&bench, &format!("{NODES}/n")).await;
    // The node of a Pod is a claim alone.
    check_good(&bench, &placed).await;
    for (kind, path) in [
        ("Secret", format!("{NAMESPACE}/secrets")),
        ("Pod", format!("{NAMESPACE}/pods")),
        ("Node", NODES.to_owned()),
    ] {
        let make = || async {
            match kind {
                "Secret" => secret(&bench, "b").await,
                "Pod" => pod(&bench, "b", None).await,
                _ => node(&bench, "b").await,
            }
        };
        let old = make().await;
        let token = bound(&bench, kind, "b").await;
        check_good(&bench, &token).await;
        delete(&bench, &format!("{path}/b")).await;
        check_refused(&bench, &token, INVALIDATED).await;
        let new = make().await;
        let shown = kind.to_lowercase();
        let reason =
            format!("{shown} UID ({new}) does not match service account {shown} ref claim ({old})");
        check_refused(&bench, &token, &reason).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_being_deleted_counts_for_a_minute() {
    let bench = bench(builder().rbac()).await;
    let metadata = |name: &str| json!({"metadata": {"name": name, "finalizers": ["a.b/c"]}});
    let (accounts, secrets) = (
        format!("{NAMESPACE}/serviceaccounts"),
        format!("{NAMESPACE}/secrets"),
    );
    create(&bench, &accounts, metadata("held")).await;
    create(&bench, &secrets, metadata("held")).await;
    account(&bench, "bot").await;
    let of_account = token(&bench, "held", json!({})).await;
    let of_secret = bound(&bench, "Secret", "held").await;
    delete(&bench, &format!("{accounts}/held")).await;
    delete(&bench, &format!("{secrets}/held")).await;
    check_good(&bench, &of_account).await;
    check_good(&bench, &of_secret).await;
    advance(Duration::from_secs(62)).await;
    let reason = "service account default/held has been deleted";
    check_refused(&bench, &of_account, reason).await;
    check_refused(&bench, &of_secret, INVALIDATED).await;
}

#[tokio::test(start_paused = true)]
async fn a_token_ends_a_minute_late() {
    let bench = bench(builder().rbac()).await;
    account(&bench, "bot").await;
    let token = token(&bench, "bot", json!({"expirationSeconds": 600})).await;
    // Clocks may differ.
    advance(Duration::from_secs(655)).await;
    check_good(&bench, &token).await;
    advance(Duration::from_secs(10)).await;
    check_refused(&bench, &token, "service account token has expired").await;
}

#[tokio::test(start_paused = true)]
async fn a_token_is_for_its_audiences() {
    let bench = bench(builder().rbac()).await;
    account(&bench, "bot").await;
    let token = token(&bench, "bot", json!({"audiences": ["x", "y"]})).await;
    let reason =
        format!("token audiences [\"x\" \"y\"] is invalid for the target audiences [\"{ISSUER}\"]");
    check_refused(&bench, &token, &reason).await;
    // In the order in which they are asked for.
    let status = review(&bench, &token, &["y", "z", "x"]).await;
    assert_eq!(status["audiences"], json!(["y", "x"]));
    // Before it is looked at whether the account is there.
    delete(&bench, &format!("{NAMESPACE}/serviceaccounts/bot")).await;
    let status = review(&bench, &token, &["z"]).await;
    let error = "[invalid bearer token, token audiences [\"x\" \"y\"] is invalid for the target audiences [\"z\"]]";
    assert_eq!(status["error"], error);
    // A token that was configured is for this server.
    let status = review(&bench, "janes", &["z", ISSUER]).await;
    assert_eq!(status["audiences"], json!([ISSUER]));
    let status = review(&bench, "janes", &["z"]).await;
    assert_eq!(status, json!({"user": {}, "error": "invalid bearer token"}));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_changed_is_refused() {
    let bench = bench(builder().rbac()).await;
    account(&bench, "bot").await;
    account(&bench, "other").await;
    let good = token(&bench, "bot", json!({})).await;
    let other = token(&bench, "other", json!({})).await;
    let [header, payload, signature] = parts(&good);
    let said: Value = serde_json::from_str(&decoded(header)).expect("it is JSON");
    let (algorithm, key) = (text(&said, "/alg"), text(&said, "/kid"));
    let encode = |json: Value| BASE64.encode(json.to_string());
    let unsigned = "go-jose/go-jose: error in cryptographic primitive";
    let flipped = signature.replacen(
        &signature[..1],
        if signature.starts_with('A') { "B" } else { "A" },
        1,
    );
    for (header, payload, signature, reason) in [
        (header.to_owned(), payload, flipped.as_str(), unsigned),
        (header.to_owned(), parts(&other)[1], signature, unsigned),
        (header.to_owned(), payload, "", unsigned),
        (encode(json!({"alg": "none"})), payload, "", unsigned),
        (
            encode(json!({"alg": "HS256", "kid": key})),
            payload,
            signature,
            unsigned,
        ),
        (
            encode(json!({"alg": algorithm})),
            payload,
            signature,
            unsigned,
        ),
        (
            encode(json!({"alg": algorithm, "kid": "other"})),
            payload,
            signature,
            "invalid signature, no keys found",
        ),
        ("xx".to_owned(), payload, signature, ""),
        (header.to_owned(), payload, "!!", ""),
        (
            header.to_owned(),
            &encode(json!({"iss": "me"})),
            signature,
            "",
        ),
    ] {
        check_refused(&bench, &format!("{header}.{payload}.{signature}"), reason).await;
    }
    check_refused(&bench, &format!("{header}.{payload}"), "").await;
    check_refused(&bench, "none", "").await;
    check_good(&bench, &good).await;
}

#[cfg(feature = "signatures")]
#[tokio::test(start_paused = true)]
async fn a_seed_leads_to_the_same_key_and_tokens() {
    let run = || async {
        let bench = bench(builder().rbac().seed(7)).await;
        account(&bench, "bot").await;
        let keys = bench.get("/openid/v1/jwks").await.text;
        let token = token(&bench, "bot", json!({})).await;
        check_good(&bench, &token).await;
        (keys, parts(&token).map(str::to_owned), bench)
    };
    let ((keys, token, one), (again, other, another)) = (run().await, run().await);
    assert_eq!(keys, again);
    let key: Value = serde_json::from_str(&keys).expect("it is JSON");
    assert_eq!(text(&key, "/keys/0/alg"), "EdDSA");
    assert_eq!(token[0], other[0]);
    // Apart from the time and what the seed has made since, both are the same cluster: it checks by the signature.
    assert_eq!(
        claims(&token.join("."))["jti"],
        claims(&other.join("."))["jti"]
    );
    check_good(&another, &token.join(".")).await;
    check_good(&one, &other.join(".")).await;
}

#[cfg(all(feature = "signatures", feature = "sqlite"))]
#[tokio::test]
async fn tokens_outlive_the_process_with_a_data_file() {
    use crate::persistence::Directory;

    let start = |directory: &Directory| {
        let builder = lariat_cluster::Cluster::builder().data(directory.file());
        bench(builder.token("sesame").rbac())
    };
    let (directory, another) = (Directory::new("tokens"), Directory::new("other-tokens"));
    let first = start(&directory).await;
    account(&first, "bot").await;
    let token = token(&first, "bot", json!({})).await;
    let keys = first.get("/openid/v1/jwks").await.text;
    first.cluster.shutdown().await;
    let second = start(&directory).await;
    assert_eq!(second.get("/openid/v1/jwks").await.text, keys);
    check_good(&second, &token).await;
    second.cluster.shutdown().await;
    // Another cluster has another key.
    let other = start(&another).await;
    account(&other, "bot").await;
    check_refused(&other, &token, "invalid signature, no keys found").await;
    other.cluster.shutdown().await;
}

#[cfg(not(feature = "signatures"))]
#[tokio::test(start_paused = true)]
async fn without_signatures_there_are_no_keys() {
    let bench = bench(builder().rbac()).await;
    for path in ["/.well-known/openid-configuration", "/openid/v1/jwks"] {
        assert_eq!(bench.get(path).await.code, StatusCode::NOT_FOUND, "{path}");
    }
}
