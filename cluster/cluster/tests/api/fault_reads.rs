//! Faults of any request, and of reads.

use std::time::Duration;

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use http::{Method, StatusCode};
use lariat_cluster::faults::{Action, ErrorBody, Refusal, Rule};
use serde_json::json;
use tokio::time::{Instant, timeout};

async fn with(rule: Rule) -> Bench {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    bench.cluster.faults().add(rule);
    bench
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_written_in_the_form_it_has() {
    let overload = with(Rule::new(Action::Refuse(Refusal::too_many_requests()))).await;
    let answer = overload.get(CONFIG_MAPS).await;
    assert_eq!(answer.code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.headers["retry-after"], "1");
    assert_eq!(answer.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(answer.text, "Too Many Requests\n");

    let refusal = Refusal::new(StatusCode::BAD_GATEWAY).body(ErrorBody::Html);
    let proxy = with(Rule::new(Action::Refuse(refusal))).await;
    let answer = proxy.get(CONFIG_MAPS).await;
    assert_eq!(answer.code, StatusCode::BAD_GATEWAY);
    assert_eq!(answer.headers["content-type"], "text/html");
    assert!(answer.headers.get("retry-after").is_none());
    assert!(answer.text.starts_with("<html>"));

    for (code, reason) in [
        (StatusCode::TOO_MANY_REQUESTS, "TooManyRequests"),
        (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
        (StatusCode::GATEWAY_TIMEOUT, "Timeout"),
        (StatusCode::GONE, "Expired"),
    ] {
        let refusal = Refusal::new(code).retry_after(Duration::from_millis(1500));
        let bench = with(Rule::new(Action::Refuse(refusal))).await;
        let answer = bench.get(&format!("{CONFIG_MAPS}?watch=1")).await;
        assert_eq!(answer.headers["retry-after"], "2");
        let status = answer.fails(code.as_u16(), reason);
        assert_eq!(status["details"]["retryAfterSeconds"], 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_write_is_not_carried_out() {
    let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR);
    let bench = with(Rule::new(Action::Refuse(refusal)).verb("create")).await;
    let object = json!({"metadata": {"name": "b"}});
    let answer = bench.post(CONFIG_MAPS, &object).await;
    answer.fails(500, "InternalError");
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn delays_add_up_and_then_the_request_is_handled() {
    let delay = |seconds| Rule::new(Action::Delay(Duration::from_secs(seconds)));
    let bench = with(delay(2)).await;
    bench.cluster.faults().add(delay(3));
    let start = Instant::now();
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_request_is_never_answered_until_the_cluster_stops() {
    let bench = with(Rule::new(Action::NoAnswer).verb("list")).await;
    let mut list = Box::pin(bench.try_ask(Method::GET, CONFIG_MAPS, &[], ""));
    let waited = timeout(Duration::from_secs(3600), &mut list).await;
    assert!(waited.is_err());
    drop(list);
    // It may be held on to, but not beyond the end.
    let mut service = bench.cluster.service();
    let request = http::Request::get(CONFIG_MAPS)
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .expect("it is well formed");
    let held = tower_service::Service::call(&mut service, request);
    let (held, ()) = tokio::join!(held, bench.cluster.shutdown());
    assert!(held.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_connection_breaks_without_an_answer_or_an_effect() {
    let bench = with(Rule::new(Action::Disconnect).verb("delete")).await;
    let path = format!("{CONFIG_MAPS}/a");
    let lost = bench.try_ask(Method::DELETE, &path, &[], "").await;
    let error = lost.expect_err("it is lost");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn reads_of_old_versions_expire_and_others_do_not() {
    let bench = with(Rule::new(Action::Expire)).await;
    let now = version(&bench.get(CONFIG_MAPS).await.json());
    bench.config_map("b", json!({})).await;
    let page = bench.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let token = text(&page, "/metadata/continue");
    let continued = bench
        .get(&format!("{CONFIG_MAPS}?limit=1&continue={token}"))
        .await;
    let status = continued.fails(410, "Expired");
    // The replacement goes on with what there is now, and could expire no more.
    let replacement = text(&status, "/metadata/continue").to_owned();
    for exact in ["resourceVersionMatch=Exact", "limit=1"] {
        let path = format!("{CONFIG_MAPS}?resourceVersion={now}&{exact}");
        bench.get(&path).await.fails(410, "Expired");
    }
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={now}");
    let mut watch = bench.watch(&path).await;
    let (event, status) = watch.event().await;
    assert_eq!((&*event, &status["code"]), ("ERROR", &json!(410)));
    assert_eq!(watch.line().await.unwrap(), None);

    for fresh in [
        CONFIG_MAPS.to_owned(),
        format!("{CONFIG_MAPS}?resourceVersion=0"),
        format!("{CONFIG_MAPS}?resourceVersion={now}&resourceVersionMatch=NotOlderThan"),
    ] {
        assert_eq!(bench.names(&fresh).await, ["a", "b"]);
    }
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.shorts(2).await, ["ADDED a", "ADDED b"]);
    bench.cluster.faults().clear();
    let path = format!("{CONFIG_MAPS}?limit=1&continue={replacement}");
    assert_eq!(bench.names(&path).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn version_0_is_the_state_of_the_time_at_which_the_rule_was_added() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let gone = bench.config_map("b", json!({})).await;
    let then = version(&gone);
    let stale = bench.cluster.faults().add(Rule::new(Action::StaleRead));
    bench.delete(&format!("{CONFIG_MAPS}/b")).await;
    let path = format!("{CONFIG_MAPS}/a");
    bench.merge(&path, json!({"data": {"a": "2"}})).await;
    bench.config_map("c", json!({})).await;

    let cached = format!("{CONFIG_MAPS}?resourceVersion=0");
    let list = bench.get(&cached).await.json();
    assert_eq!(version(&list), then);
    assert_eq!(bench.names(&cached).await, ["a", "b"]);
    let old = bench.get(&format!("{path}?resourceVersion=0")).await;
    assert_eq!(old.json()["data"]["a"], "1");
    let gone_path = format!("{CONFIG_MAPS}/b?resourceVersion=0");
    assert_eq!(bench.get(&gone_path).await.json(), gone);
    let new = format!("{CONFIG_MAPS}/c?resourceVersion=0");
    bench.get(&new).await.fails(404, "NotFound");
    // A watch catches up.
    let mut watch = bench.watch(&format!("{cached}&watch=1")).await;
    let events = watch.shorts(5).await;
    assert_eq!(
        events,
        ["ADDED a", "ADDED b", "DELETED b", "MODIFIED a", "ADDED c"]
    );

    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "c"]);
    assert_eq!(bench.get(&path).await.json()["data"]["a"], "2");
    bench.cluster.compact();
    assert_eq!(bench.names(&cached).await, ["a", "c"]);
    bench.cluster.faults().remove(stale);
    bench.config_map("d", json!({})).await;
    assert_eq!(bench.names(&cached).await, ["a", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn versions_jump_and_nothing_else_changes() {
    let bench = with(Rule::new(Action::SkipVersions(5_000_000)).verb("create")).await;
    let before = version(&bench.get(CONFIG_MAPS).await.json());
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={before}");
    let mut watch = bench.watch(&path).await;
    let created = version(&bench.config_map("b", json!({})).await);
    assert_eq!(created, before + 5_000_001);
    let (event, object) = watch.event().await;
    assert_eq!((&*event, version(&object)), ("ADDED", created));
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b"]);

    let far = Rule::new(Action::SkipVersions(u64::MAX)).verb("patch");
    bench.cluster.faults().add(far);
    for data in ["2", "3"] {
        let path = format!("{CONFIG_MAPS}/a");
        let patch = json!({"data": {"a": data}});
        let patched = version(&bench.merge(&path, patch).await.json());
        assert!(patched < i64::MAX as u64);
        assert_eq!(watch.short().await, "MODIFIED a");
    }
}
