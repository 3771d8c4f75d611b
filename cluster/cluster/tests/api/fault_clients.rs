//! Faults of clients that are cut off, of other clients, and of admission control.

use std::time::Duration;

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use http::{Method, StatusCode};
use lariat_cluster::faults::{Action, Refusal, Rule};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

const ONE: [(&str, &str); 1] = [("user-agent", "one/1.0")];
const TWO: [(&str, &str); 1] = [("user-agent", "two/1.0")];

#[tokio::test(start_paused = true)]
async fn a_partition_cuts_one_client_off_and_heals() {
    let bench = Bench::new().await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut one = bench.watch_with(&path, &ONE).await;
    let mut two = bench.watch_with(&path, &TWO).await;
    let partition = bench.cluster.faults().partition("one/");
    assert!(one.line().await.is_err());
    assert!(
        bench
            .try_ask(Method::GET, CONFIG_MAPS, &ONE, "")
            .await
            .is_err()
    );
    assert!(bench.try_ask(Method::GET, &path, &ONE, "").await.is_err());
    bench.config_map("a", json!({})).await;
    assert_eq!(two.short().await, "ADDED a");

    assert!(bench.cluster.faults().remove(partition));
    let mut one = bench.watch_with(&path, &ONE).await;
    assert_eq!(one.short().await, "ADDED a");
    // Another partition does not meet it.
    bench.cluster.faults().partition("two/");
    assert!(two.line().await.is_err());
    bench.config_map("b", json!({})).await;
    assert_eq!(one.short().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_black_hole_swallows_requests_and_silences_watches() {
    let bench = Bench::new().await;
    let mut watch = bench
        .watch_with(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=5"), &ONE)
        .await;
    bench.cluster.faults().blackhole("one/");
    bench.config_map("a", json!({})).await;
    let hour = Duration::from_secs(3600);
    assert!(timeout(hour, watch.line()).await.is_err());
    let request = bench.try_ask(Method::GET, CONFIG_MAPS, &ONE, "");
    assert!(timeout(hour, request).await.is_err());
    bench.cluster.cut_watches();
    assert!(watch.line().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_leader_cannot_renew_its_lease_and_can_do_all_else() {
    let bench = Bench::new().await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "one"}});
    let lease = bench.post(leases, &lease).await.json();
    bench.cluster.faults().block_leases("one/");
    let (path, body) = (format!("{leases}/l"), lease.to_string());
    let json = ("content-type", "application/json");
    for (headers, blocked) in [([ONE[0], json], true), ([TWO[0], json], false)] {
        let renewal = bench.try_ask(Method::PUT, &path, &headers, body.clone());
        let renewal = timeout(Duration::from_secs(60), renewal).await;
        assert_eq!(renewal.is_err(), blocked);
        for path in [&path, CONFIG_MAPS] {
            let read = bench.ask(Method::GET, path, &headers, "").await;
            assert_eq!(read.code, StatusCode::OK);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_another_one_when_a_client_comes_back() {
    let bench = Bench::new().await;
    let old = bench.config_map("a", json!({})).await;
    bench.config_map("b", json!({})).await;
    let recreate = Action::Recreate("a".into());
    bench
        .cluster
        .faults()
        .add(Rule::new(recreate).verb("watch").nth(1));
    let from = version(&bench.get(CONFIG_MAPS).await.json());
    let query = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let mut watch = bench.watch(&query).await;
    assert_eq!(watch.short().await, "DELETED a");
    let (event, new) = watch.event().await;
    assert_eq!((&*event, &new["data"]), ("ADDED", &old["data"]));
    assert_ne!(text(&new, "/metadata/uid"), text(&old, "/metadata/uid"));

    // In the path of a request: a precondition shows the difference.
    let rule = Rule::new(Action::Recreate(String::new())).verb("delete");
    bench.cluster.faults().add(rule);
    let precondition = json!({"preconditions": {"uid": new["metadata"]["uid"]}});
    let path = format!("{CONFIG_MAPS}/a");
    let media = [("content-type", "application/json")];
    let answer = bench.ask(Method::DELETE, &path, &media, precondition.to_string());
    answer.await.fails(409, "Conflict");
}

#[tokio::test(start_paused = true)]
async fn writes_are_refused_by_admission_and_quota() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let faults = bench.cluster.faults();
    let reject = faults.add(Rule::new(Action::Reject("not on a Friday".into())));
    let object = json!({"metadata": {"name": "b"}});
    let status = bench
        .post(CONFIG_MAPS, &object)
        .await
        .fails(403, "Forbidden");
    let expected = "configmaps \"b\" is forbidden: not on a Friday";
    assert_eq!(text(&status, "/message"), expected);
    let patch = bench.merge(&format!("{CONFIG_MAPS}/a"), json!({})).await;
    let status = patch.fails(403, "Forbidden");
    assert_eq!(text(&status, "/details/name"), "a");
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a"]);
    faults.remove(reject);

    faults.add(Rule::new(Action::ExceedQuota("small".into())));
    // The namespace has this one only, besides what every namespace has.
    let used = bench.names(CONFIG_MAPS).await.len();
    let status = bench
        .post(CONFIG_MAPS, &object)
        .await
        .fails(403, "Forbidden");
    let expected = format!(
        "configmaps \"b\" is forbidden: exceeded quota: small, requested: configmaps=1, used: \
         configmaps={used}, limited: configmaps={used}"
    );
    assert_eq!(text(&status, "/message"), expected);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let status = bench.post(leases, &object).await.fails(403, "Forbidden");
    let message = text(&status, "/message");
    let counted = "requested: count/leases.coordination.k8s.io=1";
    assert!(message.contains(counted), "{message}");
    let patch = bench.merge(&format!("{CONFIG_MAPS}/a"), json!({})).await;
    assert_eq!(patch.code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_rule_ends_at_its_time_and_knows_kinds_and_conditions() {
    let bench = Bench::new().await;
    let refuse = || Rule::new(Action::Refuse(Refusal::too_many_requests()));
    let refused = async |path: &str| bench.get(path).await.code == StatusCode::TOO_MANY_REQUESTS;
    let faults = bench.cluster.faults();
    let second = Duration::from_secs(1);
    for rule in [
        refuse().for_time(10 * second),
        refuse().until(Instant::now() + 20 * second),
    ] {
        faults.add(rule);
        assert!(refused(CONFIG_MAPS).await);
        sleep(9 * second).await;
        assert!(refused(CONFIG_MAPS).await);
        sleep(second).await;
        assert!(!refused(CONFIG_MAPS).await);
        faults.clear();
    }
    faults.add(refuse().kind("ConfigMap"));
    assert!(refused(CONFIG_MAPS).await);
    assert!(!refused("/api/v1/secrets").await);
    faults.clear();
    faults.add(refuse().when(|request| request.query.contains("limit=5")));
    assert!(refused(&format!("{CONFIG_MAPS}?limit=500")).await);
    assert!(!refused(CONFIG_MAPS).await);
}

#[test]
fn the_other_actions_know_whether_they_are_legal() {
    for (action, legal) in [
        (Action::Bandwidth(1), true),
        (Action::SkipStates, true),
        (Action::Recreate("a".into()), true),
        (Action::Reject("no".into()), true),
        (Action::ExceedQuota("small".into()), true),
        (Action::Freeze, false),
        (Action::Truncate(1), false),
        (Action::Garble, false),
        (Action::Html, false),
        (Action::DuplicateEvents, false),
    ] {
        assert_eq!(action.is_legal(), legal, "{action:?}");
    }
}
