//! Which requests a fault meets.

use std::time::Duration;

use crate::bench::{Bench, CONFIG_MAPS};
use http::{Method, StatusCode};
use lariat_cluster::faults::{Action, After, ErrorBody, Refusal, Rule};
use serde_json::json;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn refuse() -> Action {
    Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE))
}

/// Returns which of some requests are refused.
async fn refused(bench: &Bench, paths: &[&str]) -> Vec<bool> {
    let mut refused = Vec::new();
    for path in paths {
        let code = bench.get(path).await.code;
        refused.push(code == StatusCode::SERVICE_UNAVAILABLE);
    }
    refused
}

#[tokio::test(start_paused = true)]
async fn a_rule_meets_only_the_requests_it_is_narrowed_to() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let object = format!("{CONFIG_MAPS}/a");
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    let paths = [CONFIG_MAPS, &object, SECRETS, elsewhere, "/version"];
    let rule = || Rule::new(refuse());
    for (rule, expected) in [
        (rule(), [true; 5]),
        (rule().verb("list"), [true, false, true, true, false]),
        (
            rule().resource("configmaps"),
            [true, true, false, true, false],
        ),
        (
            rule().namespace("default"),
            [true, true, true, false, false],
        ),
        (rule().name("a"), [false, true, false, false, false]),
        (rule().subresource("status"), [false; 5]),
        (rule().client("kubectl/"), [false; 5]),
        (
            rule().verb("list").resource("secrets"),
            [false, false, true, false, false],
        ),
    ] {
        let text = format!("{rule:?}");
        let id = bench.cluster.faults().add(rule);
        assert_eq!(refused(&bench, &paths).await, expected, "{text}");
        assert!(bench.cluster.faults().remove(id));
        assert!(!bench.cluster.faults().remove(id));
    }
    assert_eq!(refused(&bench, &paths).await, [false; 5]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_knows_clients_by_the_beginning_of_their_name() {
    let bench = Bench::new().await;
    let rule = Rule::new(refuse()).client("kubectl/");
    bench.cluster.faults().add(rule);
    for (client, refused) in [("kubectl/v1.2", true), ("lariat/1 kubectl/", false)] {
        let headers = [("user-agent", client)];
        let answer = bench.ask(Method::GET, CONFIG_MAPS, &headers, "").await;
        assert_eq!(answer.code == StatusCode::SERVICE_UNAVAILABLE, refused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_counts_its_matches() {
    let bench = Bench::new().await;
    let lists = [CONFIG_MAPS; 5];
    let rule = || Rule::new(refuse()).resource("configmaps");
    for (rule, expected) in [
        (rule().nth(3), [false, false, true, false, false]),
        (rule().nth(1), [true, false, false, false, false]),
        (rule().times(2), [true, true, false, false, false]),
        (rule().skip(1).times(3), [false, true, true, true, false]),
        (rule().skip(4), [false, false, false, false, true]),
        (rule().times(0), [false; 5]),
    ] {
        let id = bench.cluster.faults().add(rule);
        // What does not match is not counted.
        bench.get(SECRETS).await;
        assert_eq!(refused(&bench, &lists).await, expected);
        let hits = expected.iter().filter(|fired| **fired).count();
        assert_eq!(bench.cluster.faults().hits(id), hits as u64);
        bench.cluster.faults().clear();
        assert_eq!(bench.cluster.faults().hits(id), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn chance_is_repeatable_and_leaves_names_alone() {
    let lists = [CONFIG_MAPS; 40];
    let mut outcomes = Vec::new();
    let mut uids = Vec::new();
    for probability in [0.5, 0.5, 0.0, f64::NAN, 1.0, 7.0] {
        let bench = Bench::new().await;
        let rule = Rule::new(refuse()).verb("list").probability(probability);
        bench.cluster.faults().add(rule);
        let outcome = refused(&bench, &lists).await;
        outcomes.push(outcome.iter().filter(|refused| **refused).count());
        uids.push(bench.config_map("a", json!({})).await["metadata"]["uid"].clone());
    }
    assert_eq!(outcomes[0], outcomes[1]);
    assert!((5..35).contains(&outcomes[0]), "{outcomes:?}");
    assert_eq!(outcomes[2..], [0, 0, 40, 40]);
    assert!(uids.iter().all(|uid| *uid == uids[0]));
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_fires_decides() {
    let bench = Bench::new().await;
    let faults = bench.cluster.faults();
    let too_many = Action::Refuse(Refusal::too_many_requests());
    let first = faults.add(Rule::new(too_many).times(1));
    let second = faults.add(Rule::new(refuse()).nth(1));
    let codes = [
        bench.get(SECRETS).await.code.as_u16(),
        bench.get(SECRETS).await.code.as_u16(),
        bench.get(SECRETS).await.code.as_u16(),
    ];
    assert_eq!(codes, [429, 503, 200]);
    assert_eq!((faults.hits(first), faults.hits(second)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_journal_has_the_faults_of_a_request() {
    let bench = Bench::new().await;
    let delay = Action::Delay(Duration::from_secs(1));
    bench.cluster.faults().add(Rule::new(delay.clone()));
    let rule = Rule::new(refuse()).resource("secrets");
    bench.cluster.faults().add(rule);
    bench.get(CONFIG_MAPS).await;
    bench.get(SECRETS).await;
    bench.cluster.faults().clear();
    bench.get(SECRETS).await;
    let requests = bench.cluster.journal().requests();
    let faults: Vec<_> = requests.iter().map(|request| &request.faults[..]).collect();
    assert_eq!(faults, [&[delay.clone()][..], &[delay, refuse()], &[]]);
}

#[test]
fn actions_know_whether_a_correct_server_leads_to_them() {
    let refusal = |code| Action::Refuse(Refusal::new(code).body(ErrorBody::Html));
    for (action, legal) in [
        (Action::Refuse(Refusal::too_many_requests()), true),
        (refusal(StatusCode::GATEWAY_TIMEOUT), true),
        (refusal(StatusCode::NOT_FOUND), false),
        (Action::LoseReply, true),
        (Action::Expire, true),
        (Action::CutWatch(After::Events(0)), true),
        (Action::RefuseWatchList, true),
        (Action::ReplayEvents(1), false),
        (Action::OmitInitialEnd, false),
    ] {
        assert_eq!(action.is_legal(), legal, "{action:?}");
    }
}
