//! The journal: what it records, and what tests ask of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::bench::{Bench, CONFIG_MAPS};
use http::{Method, StatusCode};
use lariat_cluster::faults::{Action, Rule};
use lariat_cluster::{Cluster, Journal};
use serde_json::json;
use tokio::time::sleep;

async fn as_client(bench: &Bench, client: &str, path: &str) {
    let headers = [("user-agent", client)];
    bench.ask(Method::GET, path, &headers, "").await;
}

/// Returns the message of an assertion that fails.
fn failure(assert: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(assert)).expect_err("the assertion fails");
    *panic.downcast::<String>().expect("it has a message")
}

#[tokio::test(start_paused = true)]
async fn a_request_is_recorded_with_its_time_and_its_code() {
    let bench = Bench::new().await;
    sleep(Duration::from_secs(5)).await;
    bench.config_map("a", json!({})).await;
    bench.get(&format!("{CONFIG_MAPS}/missing")).await;
    bench.cluster.faults().add(Rule::new(Action::Disconnect));
    let lost = bench.try_ask(Method::GET, "/version", &[], "").await;
    assert!(lost.is_err());
    let requests = bench.cluster.journal().requests();
    let codes: Vec<_> = requests.iter().map(|request| request.code).collect();
    let expected = [Some(StatusCode::CREATED), Some(StatusCode::NOT_FOUND), None];
    assert_eq!(codes, expected);
    assert!(
        requests
            .iter()
            .all(|request| request.at == Duration::from_secs(5))
    );
}

#[tokio::test(start_paused = true)]
async fn requests_are_selected_by_what_they_are_and_since_a_mark() {
    let bench = Bench::new().await;
    let journal = bench.cluster.journal();
    bench.get(CONFIG_MAPS).await;
    let mark = journal.mark();
    as_client(&bench, "one/1", CONFIG_MAPS).await;
    as_client(&bench, "two/1", &format!("{CONFIG_MAPS}/a")).await;
    as_client(&bench, "two/1", "/api/v1/pods").await;
    let select = || journal.select();
    for (selection, expected) in [
        (select(), 4),
        (select().since(mark), 3),
        (select().since(journal.mark()), 0),
        (select().verb("list"), 3),
        (select().verb("list").resource("configmaps"), 2),
        (select().verb("list").resource("configmaps").since(mark), 1),
        (select().client("two/"), 2),
        (select().namespace("default"), 3),
        (select().namespace(""), 1),
        (select().name("a"), 1),
        (select().subresource("status"), 0),
    ] {
        assert_eq!(selection.count(), expected, "{selection:?}");
        selection.assert_count(expected);
    }
    // A mark means the same after the journal was cleared.
    journal.clear();
    assert_eq!(journal.select().since(mark).count(), 0);
    bench.get(CONFIG_MAPS).await;
    assert_eq!(journal.select().since(mark).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hot_loop_is_shown_in_columns() {
    let bench = Bench::new().await;
    let journal: Journal = bench.cluster.journal();
    for _ in 0..5 {
        as_client(&bench, "hot/1", CONFIG_MAPS).await;
        sleep(Duration::from_millis(100)).await;
    }
    sleep(Duration::from_secs(10)).await;
    as_client(&bench, "hot/1", CONFIG_MAPS).await;
    let second = Duration::from_secs(1);
    assert_eq!(journal.select().rate(second), 5);
    assert_eq!(journal.select().rate(Duration::from_millis(150)), 2);
    journal.assert_no_hot_loop(5, second);
    let message = failure(|| journal.assert_no_hot_loop(4, second));
    let expected = "\
hot loop: list /api/v1/namespaces/default/configmaps came 5 times within 1s, of 4 allowed:
         time  code  verb  path                                   client
       0.000s   200  list  /api/v1/namespaces/default/configmaps  hot/1
       0.100s   200  list  /api/v1/namespaces/default/configmaps  hot/1
       0.200s   200  list  /api/v1/namespaces/default/configmaps  hot/1
       0.300s   200  list  /api/v1/namespaces/default/configmaps  hot/1
       0.400s   200  list  /api/v1/namespaces/default/configmaps  hot/1
";
    assert_eq!(message, expected);
}

#[tokio::test(start_paused = true)]
async fn one_watch_means_exactly_one() {
    let bench = Bench::new().await;
    let journal = bench.cluster.journal();
    let none = failure(|| journal.assert_one_watch("configmaps"));
    assert!(none.starts_with("no watch of configmaps"), "{none}");
    let mark = journal.mark();
    let _watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    journal.assert_one_watch("configmaps");
    let _again = bench.watch("/api/v1/configmaps?watch=1").await;
    let two = failure(|| journal.select().since(mark).assert_one_watch("configmaps"));
    assert!(
        two.starts_with("2 watches of configmaps instead of one:\n"),
        "{two}"
    );
    assert!(two.contains("200  watch  /api/v1/configmaps "), "{two}");
}

#[tokio::test(start_paused = true)]
async fn a_journal_keeps_as_many_requests_as_it_is_asked_to() {
    for (kept, expected) in [(0, 0), (3, 3), (10, 5)] {
        let cluster = Cluster::builder().journal(kept).start().await;
        let cluster = cluster.expect("a cluster without a socket starts");
        let bench = Bench { cluster };
        let journal = bench.cluster.journal();
        for number in 0..4 {
            bench.get(&format!("{CONFIG_MAPS}/{number}")).await;
        }
        let mark = journal.mark();
        bench.get(&format!("{CONFIG_MAPS}/last")).await;
        assert_eq!(journal.requests().len(), expected);
        let last = journal.select().since(mark).requests();
        assert_eq!(last.len(), expected.min(1));
        let codes: Vec<_> = last.iter().map(|request| request.code).collect();
        assert!(
            codes
                .iter()
                .all(|code| *code == Some(StatusCode::NOT_FOUND))
        );
        // A mark is a moment among all requests, forgotten ones too.
        journal.clear();
        bench.get(CONFIG_MAPS).await;
        assert_eq!(journal.select().since(mark).count(), expected.min(1));
    }
}
