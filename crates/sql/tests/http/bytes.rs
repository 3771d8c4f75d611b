//! Bounds on the bytes of answers.

use std::fmt::Write;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::Request;
use http_body_util::BodyExt;
use hyper::HeaderMap;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use lariat_core::Gvk;
use lariat_seal::{LocalKeys, Sealing};
use lariat_sql::http::{AuthError, SqlService};
use lariat_sql::{Access, Schema, User};
use serde_json::{Value as Json, json};
use tower::ServiceExt;

use crate::bench::{Bench, MAPS};

const KIB: u64 = 1_024;
/// The size of the data of each object.
const LARGE: u64 = 100 * KIB;

/// Starts a service with large objects, all of which each user sees.
///
/// The header `user` names the user.
async fn large(
    bench: &mut Bench,
    objects: usize,
    configure: impl FnOnce(SqlService) -> SqlService,
) -> Router {
    bench.fill();
    let mut version = String::new();
    for number in 0..objects {
        let data = json!({"color": "red", "blob": "x".repeat(LARGE as usize)});
        version = bench.create(&format!("m{number}"), data).await;
    }
    let router = configure(service(bench)).into_router();
    let url = format!("{MAPS}?limit=1&revision={version}");
    assert_eq!(get(&router, "reader", &url).await.status(), 200);
    router
}

fn service(bench: &Bench) -> SqlService {
    SqlService::new(&bench.sql)
        .authenticate_with(|headers: &HeaderMap| {
            let user = headers.get("user").and_then(|user| user.to_str().ok());
            let user = user.map(User::new);
            async move { user.ok_or_else(|| AuthError::unauthenticated("no user")) }
        })
        .visible(|_, _| async { Ok(Access::everything()) })
}

/// Returns the response, whose body is not read.
async fn get(router: &Router, user: &str, url: &str) -> Response {
    let request = Request::get(url).header("user", user).body(Body::empty());
    let response = router.clone().oneshot(request.expect("a request")).await;
    response.expect("a response")
}

async fn json(response: Response) -> Json {
    let body = response.into_body().collect().await.expect("a body");
    serde_json::from_slice(&body.to_bytes()).expect("JSON")
}

fn length(response: &Response) -> u64 {
    http_body::Body::size_hint(response.body())
        .exact()
        .expect("a length")
}

fn names(list: &Json) -> Vec<&str> {
    let objects = list["objects"].as_array().expect("objects");
    let names = objects.iter().map(|object| &object["metadata"]["name"]);
    names.map(|name| name.as_str().expect("a name")).collect()
}

/// Reads all pages, and checks that none is larger than three objects.
async fn check_pages(router: &Router, path: &str) {
    let (mut all, mut next) = (Vec::new(), String::new());
    loop {
        let url = format!("{path}&limit=100{next}");
        let response = get(router, "jane", &url).await;
        assert_eq!(response.status(), 200);
        assert!(length(&response) < 4 * LARGE);
        let list = json(response).await;
        let names = names(&list);
        assert!((1..=3).contains(&names.len()), "{names:?}");
        all.extend(names.into_iter().map(str::to_owned));
        let Some(cursor) = list["continue"].as_str() else {
            break;
        };
        next.clear();
        write!(next, "&continue={cursor}").expect("a text can be written");
    }
    assert_eq!(all, ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
}

#[tokio::test]
async fn a_list_ends_by_bytes_and_continues() {
    let mut bench = Bench::new().await;
    let configure = |it: SqlService| it.largest_list(3 * LARGE + 50 * KIB);
    let router = large(&mut bench, 8, configure).await;
    let path = format!("{MAPS}?filter=data.color=red");
    check_pages(&router, &path).await;
    let more = "sort=data.color,metadata.name&summary=data.color";
    check_pages(&router, &format!("{path}&{more}")).await;
    // One object is larger than the limit, and is a list by itself.
    let small = service(&bench).largest_list(1).into_router();
    let list = json(get(&small, "jane", &format!("{MAPS}?filter=data.color=red")).await).await;
    assert_eq!(names(&list), ["m0"]);
    assert!(list["continue"].is_string() && list["total"].is_null());
}

#[tokio::test]
async fn a_list_of_an_encrypted_kind_ends_by_bytes_and_continues() {
    let secret = Gvk::new("", "v1", "Secret");
    let key = LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|at| at as u8));
    let sealing = Sealing::of_kinds([secret.clone()], key.expect("a key"));
    let schema = Schema::new(secret, []).expect("a schema");
    let bench = Bench::with(|cluster| cluster, |sql| sql.kind(schema).sealed(sealing)).await;
    bench.fill();
    let secrets = Api::<Secret>::namespaced(bench.cluster.client(), "default");
    let mut version = None;
    for number in 0..8 {
        let data = ByteString(vec![b'x'; LARGE as usize * 3 / 4]);
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(format!("m{number}")),
                ..ObjectMeta::default()
            },
            data: Some([("blob".to_owned(), data)].into()),
            ..Secret::default()
        };
        let created = secrets.create(&PostParams::default(), &secret).await;
        version = created.expect("created").metadata.resource_version;
    }
    let router = service(&bench)
        .largest_list(3 * LARGE + 50 * KIB)
        .into_router();
    let path = "/v1/core/v1/Secret?namespaces=default";
    let url = format!("{path}&limit=1&revision={}", version.expect("a version"));
    assert_eq!(get(&router, "reader", &url).await.status(), 200);
    check_pages(&router, path).await;
    check_pages(&router, &format!("{path}&summary=metadata.namespace")).await;
}

#[tokio::test]
async fn a_numbered_page_with_too_many_bytes_is_refused() {
    let mut bench = Bench::new().await;
    let configure = |it: SqlService| it.largest_list(3 * LARGE + 50 * KIB);
    let router = large(&mut bench, 5, configure).await;
    let url = |size| format!("{MAPS}?filter=data.color=red&pagesize={size}");
    let refused = get(&router, "jane", &url(4)).await;
    assert_eq!(refused.status(), 400);
    let status = json(refused).await;
    assert_eq!(status["details"]["causes"][0]["field"], "pagesize");
    let message = status["message"].as_str().expect("a message");
    assert!(
        message.contains("only its first 3 objects fit"),
        "{message}"
    );
    assert!(message.contains("358400 bytes"), "{message}");
    assert_eq!(json(get(&router, "jane", &url(3)).await).await["total"], 5);
}

#[tokio::test]
async fn summaries_with_too_many_bytes_are_refused() {
    let mut bench = Bench::new().await;
    let configure = |it: SqlService| it.largest_list(100);
    let router = large(&mut bench, 2, configure).await;
    let refused = get(
        &router,
        "jane",
        &format!("{MAPS}?summary=metadata.name&summaryonly"),
    )
    .await;
    assert_eq!(refused.status(), 400);
    let message = json(refused).await["message"].to_string();
    assert!(message.contains("more than 100 bytes"), "{message}");
}

#[tokio::test]
async fn clients_that_do_not_read_hold_a_bounded_number_of_bytes() {
    let mut bench = Bench::new().await;
    let configure = |it: SqlService| {
        it.largest_list(2 * LARGE + 50 * KIB)
            .held_bytes_per_user(5 * LARGE)
            .held_bytes(8 * LARGE)
    };
    let router = large(&mut bench, 4, configure).await;
    let list = format!("{MAPS}?filter=data.color=red");
    let mut held = Vec::new();
    let mut refusals = Vec::new();
    for _ in 0..16 {
        let response = get(&router, "jane", &list).await;
        match response.status().as_u16() {
            200 => held.push(response),
            429 => refusals.push(response),
            status => panic!("{status}"),
        }
    }
    let bytes = |held: &[Response]| held.iter().map(length).sum::<u64>();
    assert_eq!((held.len(), refusals.len()), (2, 14));
    assert!(bytes(&held) <= 5 * LARGE, "{}", bytes(&held));
    let refused = refusals.pop().expect("it was refused");
    assert_eq!(refused.headers()["retry-after"], "1");
    let message = json(refused).await["message"].to_string();
    assert!(message.contains("your limit is 512000 bytes"), "{message}");
    // Single objects count as well, and others have their own room.
    let object = format!("{MAPS}/default/m1");
    for (user, url, status) in [
        ("jane", &object, 429),
        ("joe", &list, 200),
        ("jim", &object, 200),
        ("jim", &list, 429),
    ] {
        let response = get(&router, user, url).await;
        assert_eq!(response.status(), status, "{user} {url}");
        held.push(response);
    }
    assert!(bytes(&held[..2]) + length(&held[3]) + length(&held[4]) <= 8 * LARGE);
    let full = json(held.pop().expect("it was refused")).await["message"].to_string();
    assert!(full.contains("the limit is 819200 bytes"), "{full}");
    // An answer that is read, or dropped with its connection, makes room.
    drop(held);
    assert_eq!(get(&router, "jane", &list).await.status(), 200);
}

#[tokio::test]
async fn one_object_among_many_equal_names_is_found() {
    let bench = Bench::new().await;
    bench.fill();
    let mut version = String::new();
    for zeros in 0..20 {
        let name = format!("n{}1", "0".repeat(zeros));
        version = bench
            .create(&name, json!({"zeros": zeros.to_string()}))
            .await;
    }
    let router = service(&bench).largest_list(1).into_router();
    for zeros in [0, 7, 19] {
        let name = format!("n{}1", "0".repeat(zeros));
        let url = format!("{MAPS}/default/{name}?revision={version}");
        let object = json(get(&router, "jane", &url).await).await;
        assert_eq!(object["data"]["zeros"], zeros.to_string());
    }
    let url = format!("{MAPS}/default/n{}1", "0".repeat(40));
    assert_eq!(get(&router, "jane", &url).await.status(), 404);
}
