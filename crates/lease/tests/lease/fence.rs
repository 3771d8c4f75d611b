//! Clients that write only while their process leads.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use lariat_cluster::faults::{Action, Rule};
use lariat_lease::{Elector, Fenced, Lease};
use tokio::time::{Instant, sleep};

use crate::bench::{Bench, SECOND};

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

fn config_map(name: &str) -> ConfigMap {
    let name = Some(name.to_owned());
    ConfigMap {
        metadata: ObjectMeta {
            name,
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

fn fenced(error: kube::Error) -> Fenced {
    let kube::Error::Service(source) = error else {
        panic!("{error}");
    };
    *source.downcast().expect("the fence says why")
}

#[tokio::test(start_paused = true)]
async fn the_leader_writes_and_others_only_read() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let two = bench.replica("two");
    let client = one.leadership.fence(bench.client("one"));
    let params = PostParams::default();
    let created = config_maps(&client).create(&params, &config_map("a")).await;
    created.expect("the leader writes");

    let client = two.leadership.fence(bench.client("two"));
    bench.cluster.journal().clear();
    let refused = config_maps(&client).create(&params, &config_map("b")).await;
    let refused = fenced(refused.expect_err("it does not lead"));
    assert!(!refused.was_sent());
    assert_eq!(
        refused.to_string(),
        "POST /api/v1/namespaces/default/configmaps was not sent: \
         this process does not hold the lease default/shop"
    );
    let deleted = config_maps(&client)
        .delete("a", &DeleteParams::default())
        .await;
    fenced(deleted.map(drop).expect_err("it does not lead"));
    config_maps(&client)
        .get("a")
        .await
        .expect("reads go through");
    let seen = bench
        .cluster
        .journal()
        .select()
        .client("two")
        .resource("configmaps");
    assert_eq!(seen.count(), 1, "nothing but the read was sent");
}

#[tokio::test(start_paused = true)]
async fn questions_and_dry_runs_need_no_lease() {
    let bench = Bench::new().await;
    let _one = bench.led_by("one").await;
    let two = bench.replica("two");
    let client = two.leadership.fence(bench.client("two"));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let created = config_maps(&client).create(&dry, &config_map("a")).await;
    created.expect("a dry run changes nothing");
    config_maps(&bench.client("one"))
        .create(&PostParams::default(), &config_map("a"))
        .await
        .expect("created");
    // kube sends the options of a deletion in its body.
    let dry = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    let deleted = config_maps(&client).delete("a", &dry).await;
    deleted.map(drop).expect("a dry run changes nothing");
    let all = ListParams::default();
    let deleted = config_maps(&client).delete_collection(&dry, &all).await;
    deleted.map(drop).expect("a dry run changes nothing");
    assert!(config_maps(&client).get("a").await.is_ok(), "it is left");
    let attributes = ResourceAttributes {
        verb: Some("get".into()),
        ..Default::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..Default::default()
    };
    let review = SelfSubjectAccessReview {
        spec,
        ..Default::default()
    };
    let asked = Api::all(client)
        .create(&PostParams::default(), &review)
        .await;
    asked.expect("a review is a question");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_cut_off_at_the_deadline() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let client = one.leadership.fence(bench.client("one"));
    bench.cluster.faults().block_leases("one");
    bench
        .cluster
        .faults()
        .add(Rule::new(Action::NoAnswer).resource("configmaps"));
    let deadline = one.leadership.deadline().expect("it leads");
    let cut = config_maps(&client)
        .create(&PostParams::default(), &config_map("a"))
        .await;
    let cut = fenced(cut.expect_err("it has no answer"));
    assert!(cut.was_sent());
    assert!(Instant::now() <= deadline + SECOND / 100);
}

#[tokio::test(start_paused = true)]
async fn a_write_outlasts_renewals_of_the_lease() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let client = one.leadership.fence(bench.client("one"));
    let slow = Action::DelayReply(40 * SECOND);
    bench
        .cluster
        .faults()
        .add(Rule::new(slow).resource("configmaps"));
    let created = config_maps(&client)
        .create(&PostParams::default(), &config_map("a"))
        .await;
    created.expect("the lease was held all the time");
}

/// A paused process: its clock jumps, and nothing of it ran meanwhile.
#[tokio::test(start_paused = true)]
async fn a_process_that_goes_on_after_its_deadline_writes_nothing() {
    let bench = Bench::new().await;
    let one = bench.led_by("one").await;
    let client = one.leadership.fence(bench.client("one"));
    sleep(SECOND).await;
    tokio::time::advance(20 * SECOND).await;
    assert!(!one.leads());
    let refused = config_maps(&client)
        .create(&PostParams::default(), &config_map("a"))
        .await;
    assert!(!fenced(refused.expect_err("its time is over")).was_sent());
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_deletion_tells_whether_it_is_a_dry_run() {
    let bench = Bench::new().await;
    let _one = bench.led_by("one").await;
    let client = bench.replica("two").leadership.fence(bench.client("two"));
    let all = r#"{"dryRun":["All"]}"#;
    for (path, body, is_sent) in [
        ("configmaps/a?dryRun=All", "", true),
        ("configmaps/a", all, true),
        ("configmaps/a", "", false),
        ("configmaps/a?dryRun=All", "{}", false),
        ("services/a/proxy/x?dryRun=All", all, false),
    ] {
        let request = http::Request::delete(format!("/api/v1/namespaces/default/{path}"));
        let request = request.body(body.as_bytes().to_vec()).unwrap();
        let error = client
            .request_text(request)
            .await
            .expect_err("it is absent");
        let is_refused = matches!(error, kube::Error::Service(_));
        assert_eq!(is_refused, !is_sent, "{path} {body}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn client_of_a_term_stays_closed_in_the_next_one() {
    let bench = Bench::new().await;
    let lease = Lease::new("shop").identity("one");
    let elector = Elector::new(bench.client("one"), lease).expect("it is valid");
    let leadership = elector.leadership();
    let params = PostParams::default();
    let mut earlier: Option<Client> = None;
    for name in ["a", "b"] {
        let led = async {
            assert!(leadership.acquired().await);
            let client = leadership.term().fence(bench.client("one"));
            let created = config_maps(&client)
                .create(&params, &config_map(name))
                .await;
            created.expect("it is in its term");
            if let Some(earlier) = earlier.replace(client) {
                let refused = config_maps(&earlier)
                    .create(&params, &config_map("c"))
                    .await;
                assert!(!fenced(refused.expect_err("its term is over")).was_sent());
            }
        };
        elector.run(led).await.expect("it ends");
    }
}
