//! Faults of answers: late, never, broken off; and requests beyond a limit.

use std::io::ErrorKind;
use std::time::Duration;

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use lariat_cluster::faults::{Action, Refusal, Rule};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use tower_service::Service;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const HOUR: Duration = Duration::from_secs(3600);

async fn with(rule: Rule) -> Bench {
    let bench = Bench::new().await;
    for name in ["a", "b"] {
        bench.config_map(name, json!({})).await;
    }
    bench.cluster.faults().add(rule);
    bench
}

fn named(name: &str) -> String {
    json!({"metadata": {"name": name}}).to_string()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_that_of_the_moment_of_the_request() {
    let late = Action::DelayReply(seconds(30));
    let bench = with(Rule::new(late).client("late")).await;
    let start = Instant::now();
    let slow = [("user-agent", "late"), JSON[0]];
    let mut list = Box::pin(bench.try_ask(Method::GET, CONFIG_MAPS, &slow, ""));
    let mut create = Box::pin(bench.try_ask(Method::POST, CONFIG_MAPS, &slow, named("c")));
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut watch = Box::pin(bench.watch_with(&path, &slow));
    for waits in [
        timeout(seconds(1), &mut list).await.is_err(),
        timeout(seconds(1), &mut create).await.is_err(),
        timeout(seconds(1), &mut watch).await.is_err(),
    ] {
        assert!(waits);
    }
    // The creation is there already, and no answer is in the journal yet.
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b", "c"]);
    let late = bench.cluster.journal().select().client("late").requests();
    assert!(late.iter().all(|request| request.code.is_none()));
    bench.config_map("d", json!({})).await;

    let list = list.await.expect("it is answered").text;
    assert_eq!(start.elapsed(), seconds(30));
    let list: Value = serde_json::from_str(&list).expect("a list is JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    let created = create.await.expect("it is answered");
    assert_eq!(
        (created.code, start.elapsed()),
        (StatusCode::CREATED, seconds(31))
    );
    let mut watch = watch.await;
    assert_eq!(start.elapsed(), seconds(32));
    let seen = watch.shorts(4).await;
    assert_eq!(seen, ["ADDED a", "ADDED b", "ADDED c", "ADDED d"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_adds_up_with_other_faults() {
    let late = || Rule::new(Action::DelayReply(seconds(2)));
    let bench = with(late()).await;
    let faults = bench.cluster.faults();
    faults.add(Rule::new(Action::Delay(seconds(5))));
    faults.add(late());
    faults.add(Rule::new(Action::LoseReply).verb("create"));
    faults.add(Rule::new(Action::Refuse(Refusal::too_many_requests())).verb("list"));
    let start = Instant::now();
    let refused = bench.get(CONFIG_MAPS).await;
    assert_eq!(refused.code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(start.elapsed(), seconds(9));
    let lost = bench
        .try_ask(Method::POST, CONFIG_MAPS, &JSON, named("c"))
        .await;
    assert!(lost.is_err());
    assert_eq!(start.elapsed(), seconds(18));
    faults.clear();
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_sent_when_the_cluster_stops() {
    let bench = with(Rule::new(Action::DelayReply(HOUR))).await;
    let mut service = bench.cluster.service();
    let request = Request::get(CONFIG_MAPS).body(Full::<Bytes>::default());
    let held = service.call(request.expect("it is well formed"));
    let stop = async {
        sleep(seconds(1)).await;
        bench.cluster.shutdown().await;
    };
    let (held, ()) = tokio::join!(held, stop);
    assert_eq!(held.expect("it is answered").status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_carried_out_and_never_answered() {
    let bench = with(Rule::new(Action::NoReply).verb("create").nth(1)).await;
    let mut create = Box::pin(bench.try_ask(Method::POST, CONFIG_MAPS, &JSON, named("c")));
    assert!(timeout(HOUR, &mut create).await.is_err());
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b", "c"]);
    let again = bench
        .try_ask(Method::POST, CONFIG_MAPS, &JSON, named("c"))
        .await;
    again.expect("it is answered").fails(409, "AlreadyExists");
    let creates = bench.cluster.journal().select().verb("create").requests();
    let codes: Vec<_> = creates[2..].iter().map(|request| request.code).collect();
    assert_eq!(codes, [None, Some(StatusCode::CONFLICT)]);
    // It breaks with the cluster.
    let bench = with(Rule::new(Action::NoReply)).await;
    let mut service = bench.cluster.service();
    let request = Request::get(CONFIG_MAPS).body(Full::<Bytes>::default());
    let held = service.call(request.expect("it is well formed"));
    let (held, ()) = tokio::join!(held, bench.cluster.shutdown());
    assert_eq!(
        held.expect_err("it breaks").kind(),
        ErrorKind::ConnectionReset
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_breaks_off_after_some_bytes() {
    let bench = with(Rule::new(Action::CutBody(20)).client("cut")).await;
    let cut = [("user-agent", "cut"), JSON[0]];
    for path in [CONFIG_MAPS.to_owned(), format!("{CONFIG_MAPS}/a")] {
        let broken = bench.try_ask(Method::GET, &path, &cut, "").await;
        let error = broken.expect_err("it breaks");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{path}");
    }
    let broken = bench
        .try_ask(Method::POST, CONFIG_MAPS, &cut, named("c"))
        .await;
    assert!(broken.is_err());
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b", "c"]);

    // A watch breaks in the middle of its second line, with the first whole.
    bench.cluster.faults().clear();
    let path = format!("{CONFIG_MAPS}?watch=1");
    let whole = bench.watch(&path).await.frame().await;
    bench
        .cluster
        .faults()
        .add(Rule::new(Action::CutBody(whole.len() + 7)));
    let mut watch = bench.watch(&path).await;
    assert_eq!(watch.short().await, "ADDED a");
    assert_eq!(
        watch.line().await.expect_err("it breaks").kind(),
        ErrorKind::ConnectionReset
    );
    assert_eq!(watch.rest(), "{\"type\"");
    assert_eq!(watch.line().await.expect("it is over"), None);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_shorter_than_the_cut_is_whole() {
    let bench = with(Rule::new(Action::CutBody(0))).await;
    let faults = bench.cluster.faults();
    assert!(
        bench
            .try_ask(Method::GET, CONFIG_MAPS, &[], "")
            .await
            .is_err()
    );
    faults.clear();
    let whole = bench.get(CONFIG_MAPS).await.bytes;
    faults.add(Rule::new(Action::CutBody(whole.len() + 1)));
    assert_eq!(bench.get(CONFIG_MAPS).await.bytes, whole);
    faults.clear();
    faults.add(Rule::new(Action::CutBody(whole.len())));
    assert!(
        bench
            .try_ask(Method::GET, CONFIG_MAPS, &[], "")
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn an_old_version_is_gone_by_the_status_of_the_answer() {
    let bench = with(Rule::new(Action::Gone)).await;
    let list = bench.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let (now, token) = (version(&list), text(&list, "/metadata/continue"));
    for query in [
        format!("watch=1&resourceVersion={now}"),
        format!("limit=1&continue={token}"),
        format!("resourceVersion={now}&resourceVersionMatch=Exact"),
    ] {
        let gone = bench.get(&format!("{CONFIG_MAPS}?{query}")).await;
        let status = gone.fails(410, "Expired");
        let message = text(&status, "/message");
        assert!(!query.contains("watch") || message.starts_with("too old resource version"));
    }
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.shorts(2).await, ["ADDED a", "ADDED b"]);
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_a_limit_are_refused_until_others_are_answered() {
    let bench = with(Rule::new(Action::LimitRequests(2)).verb("list")).await;
    let faults = bench.cluster.faults();
    let limit = faults.add(Rule::new(Action::LimitRequests(2)).resource("configmaps"));
    faults.add(Rule::new(Action::Delay(seconds(10))).verb("list").times(2));
    let lists = || bench.try_ask(Method::GET, CONFIG_MAPS, &[], "");
    let (mut one, mut two) = (Box::pin(lists()), Box::pin(lists()));
    assert!(timeout(seconds(1), &mut one).await.is_err());
    assert!(timeout(seconds(1), &mut two).await.is_err());
    let refused = bench.get(CONFIG_MAPS).await;
    assert_eq!(refused.code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers["retry-after"], "1");
    // Watches take no place and need none.
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.short().await, "ADDED a");
    // The rule that was asked first has refused the list; this one refuses a get.
    let get = format!("{CONFIG_MAPS}/a");
    assert_eq!(bench.get(&get).await.code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(faults.hits(limit), 1);
    assert_eq!(one.await.expect("it is answered").code, StatusCode::OK);
    assert_eq!(bench.get(CONFIG_MAPS).await.code, StatusCode::OK);
    // Who goes away leaves its place.
    drop(two);
    faults.add(Rule::new(Action::NoReply).verb("get"));
    let (mut one, mut two) = (Box::pin(bench.get(&get)), Box::pin(bench.get(&get)));
    assert!(timeout(seconds(1), &mut one).await.is_err());
    assert!(timeout(seconds(1), &mut two).await.is_err());
    drop((one, two));
    assert_eq!(bench.get(CONFIG_MAPS).await.code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_slow_body_keeps_its_place_until_it_is_sent() {
    let bench = with(Rule::new(Action::LimitRequests(1))).await;
    bench
        .cluster
        .faults()
        .add(Rule::new(Action::Bandwidth(10)).times(1));
    let mut slow = Box::pin(bench.try_ask(Method::GET, CONFIG_MAPS, &[], ""));
    assert!(timeout(seconds(5), &mut slow).await.is_err());
    let refused = bench.get(CONFIG_MAPS).await;
    assert_eq!(refused.code, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(slow.await.expect("it is answered").code, StatusCode::OK);
    assert_eq!(bench.get(CONFIG_MAPS).await.code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_breaks_what_waits_and_what_is_open() {
    for (action, is_done) in [
        (Action::Delay(HOUR), false),
        (Action::NoAnswer, false),
        (Action::NoReply, true),
        (Action::DelayReply(HOUR), true),
    ] {
        let bench = with(Rule::new(action).verb("create")).await;
        let faults = bench.cluster.faults();
        let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
        assert_eq!(watch.shorts(2).await, ["ADDED a", "ADDED b"]);
        let mut create = Box::pin(bench.try_ask(Method::POST, CONFIG_MAPS, &JSON, named("c")));
        assert!(timeout(seconds(1), &mut create).await.is_err());
        // Another client is cut off, which is nothing to this one.
        faults.partition("other/");
        assert!(timeout(seconds(1), &mut create).await.is_err());
        let away = faults.partition("");
        assert!(create.await.is_err());
        assert!(
            bench
                .try_ask(Method::GET, CONFIG_MAPS, &[], "")
                .await
                .is_err()
        );
        let end = async {
            while let Ok(line) = watch.line().await {
                assert!(line.is_some())
            }
        };
        timeout(seconds(1), end).await.expect("the watch is cut");
        assert!(faults.remove(away));
        assert_eq!(
            bench.names(CONFIG_MAPS).await.len(),
            2 + usize::from(is_done)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_falls_silent_with_its_client() {
    let bench = with(Rule::new(Action::DelayReply(seconds(60))).verb("list")).await;
    let mut list = Box::pin(bench.try_ask(Method::GET, CONFIG_MAPS, &[], ""));
    assert!(timeout(seconds(1), &mut list).await.is_err());
    let hole = bench.cluster.faults().blackhole("");
    assert!(timeout(HOUR, &mut list).await.is_err());
    bench.cluster.faults().remove(hole);
    assert!(timeout(HOUR, &mut list).await.is_err());
    assert_eq!(
        bench.get(&format!("{CONFIG_MAPS}/a")).await.code,
        StatusCode::OK
    );
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_gives_known_versions_to_other_content() {
    let bench = with(Rule::new(Action::NoAnswer).verb("none")).await;
    let backup = bench.cluster.snapshot();
    let path = format!("{CONFIG_MAPS}/a");
    let first = bench
        .merge(&path, json!({"data": {"a": "first"}}))
        .await
        .json();
    bench
        .cluster
        .rewind_to(&backup)
        .await
        .expect("it has no file");
    let second = bench
        .merge(&path, json!({"data": {"a": "second"}}))
        .await
        .json();
    assert_eq!(version(&first), version(&second));
    assert_eq!(first["metadata"]["uid"], second["metadata"]["uid"]);
    assert_eq!(
        (text(&first, "/data/a"), text(&second, "/data/a")),
        ("first", "second")
    );
}

#[test]
fn faults_of_answers_are_legal() {
    for action in [
        Action::DelayReply(HOUR),
        Action::NoReply,
        Action::CutBody(1),
        Action::Gone,
        Action::LimitRequests(1),
    ] {
        assert!(action.is_legal(), "{action:?}");
    }
}
