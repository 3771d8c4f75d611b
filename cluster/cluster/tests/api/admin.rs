//! The admin endpoint.

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use http::{Method, StatusCode};
use lariat_cluster::Cluster;
use serde_json::{Value, json};

async fn bench() -> Bench {
    let cluster = Cluster::builder().seed(1).admin(true).start().await;
    Bench {
        cluster: cluster.expect("a cluster without a socket starts"),
    }
}

async fn post(bench: &Bench, path: &str, body: &Value) -> Value {
    let answer = bench.post(path, body).await;
    assert!(answer.code.is_success(), "{path}: {}", answer.text);
    answer.json()
}

#[tokio::test(start_paused = true)]
async fn it_is_not_there_unless_it_is_wanted() {
    let plain = Bench::new().await;
    for path in ["/lariat/status", "/lariat/faults", "/lariat"] {
        let answer = plain.get(path).await;
        assert_eq!(answer.code, StatusCode::NOT_FOUND);
        assert_eq!(answer.text, "404 page not found\n");
    }
    let bench = bench().await;
    assert_eq!(bench.get("/lariat/status").await.code, StatusCode::OK);
    assert_eq!(
        bench.get("/lariat/nosuch").await.code,
        StatusCode::NOT_FOUND
    );
    bench
        .delete("/lariat/status")
        .await
        .fails(405, "MethodNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn rules_are_added_listed_and_taken_away() {
    let bench = bench().await;
    let rules = [
        json!({"action": {"refuse": {"code": 503, "body": "html", "retryAfterSeconds": 5}},
            "verb": "list", "resource": "configmaps", "times": 2}),
        json!({"action": "noAnswer", "client": "x/", "probability": 0.5, "forSeconds": 1.5}),
        json!({"action": {"cutWatch": {"events": 3}}, "kind": "Pod", "skip": 1}),
        json!({"action": {"delay": {"seconds": 0.25}}, "name": "unmatched"}),
        json!({"action": "garble", "namespace": "nowhere", "subresource": "status"}),
        json!({"action": {"delayReply": {"seconds": 2.5}}, "name": "unmatched"}),
        json!({"action": "noReply", "name": "unmatched"}),
        json!({"action": {"cutBody": {"bytes": 7}}, "name": "unmatched"}),
        json!({"action": "gone", "name": "unmatched"}),
        json!({"action": {"limitRequests": {"requests": 400}}, "name": "unmatched"}),
    ];
    for rule in &rules {
        post(&bench, "/lariat/faults", rule).await;
    }
    assert_eq!(
        bench.get(CONFIG_MAPS).await.code,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let list = bench.get("/lariat/faults").await.json();
    let items = list["items"].as_array().unwrap();
    let listed: Vec<&Value> = items.iter().map(|item| &item["rule"]).collect();
    assert_eq!(listed, rules.iter().collect::<Vec<_>>());
    assert_eq!(
        (&items[0]["hits"], &items[4]["legal"]),
        (&json!(1), &json!(false))
    );

    let first = format!("/lariat/faults/{}", items[0]["id"]);
    assert_eq!(bench.delete(&first).await.code, StatusCode::OK);
    assert_eq!(bench.delete(&first).await.code, StatusCode::NOT_FOUND);
    assert_eq!(bench.get(CONFIG_MAPS).await.code, StatusCode::OK);
    bench.delete("/lariat/faults").await;
    let list = bench.get("/lariat/faults").await.json();
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_wrong_is_refused_by_member_and_with_what_is_allowed() {
    let bench = bench().await;
    for (rule, parts) in [
        (json!({}), &["missing field `action`"][..]),
        (
            json!({"action": "noAnswer", "verbb": "get"}),
            &["`verbb`", "`verb`", "`resource`"],
        ),
        (
            json!({"action": "explode"}),
            &["action", "`explode`", "`noAnswer`", "`cutWatch`"],
        ),
        (
            json!({"action": {"refuse": {"code": 99}}}),
            &["action.refuse.code", "400 to 599"],
        ),
        (
            json!({"action": {"refuse": {"code": 500, "body": "x"}}}),
            &["refuse.body", "`html`"],
        ),
        (
            json!({"action": {"delay": {"seconds": -1}}}),
            &["action.delay.seconds", "from 0 on"],
        ),
        (
            json!({"action": {"cutWatch": {"lines": 1}}}),
            &["cutWatch", "`lines`", "`events`"],
        ),
        (
            json!({"action": "html", "times": "two"}),
            &["times: ", "\"two\"", "u64"],
        ),
    ] {
        let answer = bench.post("/lariat/faults", &rule).await;
        let status = answer.fails(400, "BadRequest");
        let message = text(&status, "/message");
        for part in parts {
            assert!(message.contains(part), "{rule}: {message} has no {part}");
        }
    }
    let answer = bench
        .call(Method::POST, "/lariat/faults", "application/json", "{}{")
        .await;
    answer.fails(400, "BadRequest");
    assert_eq!(bench.get("/lariat/faults").await.json()["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn faults_do_not_meet_who_takes_them_away_and_the_journal_leaves_it_out() {
    let bench = bench().await;
    post(&bench, "/lariat/faults", &json!({"action": "disconnect"})).await;
    let lost = bench.try_ask(Method::GET, CONFIG_MAPS, &[], "").await;
    assert!(lost.is_err());
    bench.delete("/lariat/faults").await;
    bench.get(CONFIG_MAPS).await;
    let journal = bench.get("/lariat/journal?verb=list").await.json();
    let items = journal["items"].as_array().unwrap();
    let codes: Vec<&Value> = items.iter().map(|item| &item["code"]).collect();
    assert_eq!(codes, [&Value::Null, &json!(200)]);
    bench.delete("/lariat/journal").await;
    assert_eq!(
        bench.get("/lariat/journal").await.json()["items"],
        json!([])
    );
}

#[tokio::test(start_paused = true)]
async fn watches_history_and_clients_are_at_hand() {
    let bench = bench().await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let old = version(&bench.get(CONFIG_MAPS).await.json());
    bench.config_map("a", json!({})).await;
    let mut watch = bench.watch(&path).await;
    assert_eq!(watch.short().await, "ADDED a");
    let status = bench.get("/lariat/status").await.json();
    assert_eq!(
        (&status["watches"], &status["objects"]["configmaps"]),
        (&json!(1), &json!(1))
    );
    post(&bench, "/lariat/watches/end", &json!({})).await;
    assert_eq!(watch.line().await.unwrap(), None);
    let mut watch = bench.watch(&path).await;
    assert_eq!(watch.short().await, "ADDED a");
    post(&bench, "/lariat/watches/cut", &json!({})).await;
    assert!(watch.line().await.is_err());
    post(&bench, "/lariat/compact", &json!({})).await;
    let exact = format!("{CONFIG_MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    bench.get(&exact).await.fails(410, "Expired");
    post(&bench, "/lariat/partitions", &json!({"client": "x/"})).await;
    let headers = [("user-agent", "x/1")];
    let lost = bench.try_ask(Method::GET, CONFIG_MAPS, &headers, "").await;
    assert!(lost.is_err());
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_kept_by_name() {
    let bench = bench().await;
    bench.config_map("a", json!({})).await;
    let taken = post(&bench, "/lariat/snapshots/one", &json!({})).await;
    bench.config_map("b", json!({})).await;
    assert_eq!(bench.get("/lariat/snapshots/one").await.json(), taken);
    let list = bench.get("/lariat/snapshots").await.json();
    assert_eq!(list["items"], json!([taken]));
    post(&bench, "/lariat/snapshots/one/restore", &json!({})).await;
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
    bench.config_map("c", json!({})).await;
    post(&bench, "/lariat/snapshots/one/rewind", &json!({})).await;
    let list = bench.get(CONFIG_MAPS).await.json();
    assert_eq!(
        list["metadata"]["resourceVersion"],
        taken["resourceVersion"]
    );
    bench.delete("/lariat/snapshots/one").await;
    let gone = bench
        .post("/lariat/snapshots/one/restore", &json!({}))
        .await;
    assert_eq!(gone.code, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn controllers_are_paused_and_resumed() {
    let bench = bench().await;
    let control = "/lariat/control/namespace-deletion";
    let path = "/api/v1/namespaces/shop";
    let shop = json!({"metadata": {"name": "shop"}});
    post(&bench, "/api/v1/namespaces", &shop).await;
    post(&bench, &format!("{control}/pause"), &json!({})).await;
    bench.delete(path).await;
    tokio::time::sleep(tokio::time::Duration::from_secs(60)).await;
    let stuck = bench.get(path).await.json();
    assert_eq!(text(&stuck, "/status/phase"), "Terminating");
    post(&bench, &format!("{control}/resume"), &json!({})).await;
    tokio::time::sleep(tokio::time::Duration::from_secs(60)).await;
    assert_eq!(bench.get(path).await.code, StatusCode::NOT_FOUND);
    let collector = "/lariat/control/garbage-collection";
    post(&bench, &format!("{collector}/pause"), &json!({})).await;
    let answer = bench.get(&format!("{collector}/pause")).await;
    assert_eq!(answer.code, StatusCode::METHOD_NOT_ALLOWED);
    let answer = bench.get(&format!("{collector}/stop")).await;
    assert_eq!(answer.code, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_said_to_be_json_is_refused() {
    let bench = bench().await;
    let rule = json!({"action": "noAnswer", "client": "x/"}).to_string();
    for media in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let answer = bench
            .call(Method::POST, "/lariat/faults", media, rule.clone())
            .await;
        answer.fails(415, "UnsupportedMediaType");
    }
    for (path, media, code) in [
        ("/lariat/faults", "application/json", 201),
        ("/lariat/faults", "Application/JSON; charset=utf-8", 201),
    ] {
        let answer = bench.call(Method::POST, path, media, rule.clone()).await;
        assert_eq!(answer.code.as_u16(), code, "{media}: {}", answer.text);
    }
    // Where no body is needed, none needs a type; one that has another is refused all the same.
    let (post, path) = (Method::POST, "/lariat/snapshots/p");
    let answer = bench.call(post.clone(), path, "text/plain", "").await;
    answer.fails(415, "UnsupportedMediaType");
    assert_eq!(
        bench.call(post, path, "", "").await.code,
        StatusCode::CREATED
    );
}
