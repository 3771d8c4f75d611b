//! Tests of steps with failing requests, stale caches and restarts.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::deployment;
use lariat_operator::{Desired, Step};
use serde_json::json;
use tokio::time;

use crate::apply_rig::{Rig, config};
use crate::apply_steps_bench::{chain, gate, open, rig_with, there};
use crate::bench::{SECOND, settle};

#[tokio::test(start_paused = true)]
async fn a_failed_object_keeps_later_steps_waiting_and_no_others() {
    let rig = Rig::watching().await;
    let refused = Rule::new(Action::Reject("not today".to_owned()));
    let rule = refused.resource("configmaps").verb("patch").name("one");
    let rule = rig.cluster().faults().add(rule);
    rig.want_all(
        Desired::new()
            .step(
                Step::new("first")
                    .with_value(config("one", "1"))
                    .with_value(config("two", "1")),
            )
            .step(
                Step::new("second")
                    .after("first")
                    .with_value(config("three", "1")),
            )
            .step(Step::new("apart").with_value(config("four", "1")))
            .step(
                Step::new("behind")
                    .after("apart")
                    .with_value(config("five", "1")),
            ),
    );
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.last().unwrap_err();
    assert!(error.to_string().contains("not today"), "{error}");
    assert!(
        error
            .applied()
            .to_string()
            .contains("step second waits for first")
    );
    assert_eq!(there(&rig).await, ["five", "four", "two"]);
    rig.cluster().faults().remove(rule);
    time::sleep(60 * SECOND).await;
    assert_eq!(there(&rig).await, ["five", "four", "one", "three", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_step_with_an_object_that_cannot_even_be_sent_is_never_done() {
    let unserved = json!({"apiVersion": "no.dev/v1", "kind": "Nothing", "metadata": {"name": "x"}});
    let nameless = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}});
    for bad in [
        vec![unserved],
        vec![nameless],
        vec![config("twice", "1"), config("twice", "2")],
    ] {
        let first = bad
            .iter()
            .cloned()
            .fold(Step::new("first"), Step::with_value);
        let first = first.with_value(config("one", "1"));
        let rig = rig_with(
            Desired::new().step(first).step(
                Step::new("second")
                    .after("first")
                    .with_value(config("two", "1")),
            ),
        )
        .await;
        let error = rig.last().unwrap_err();
        assert_eq!(error.applied().waiting().len(), 1, "{error}");
        assert_eq!(there(&rig).await, ["one"], "{bad:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cut_connections_and_lost_answers_in_any_step_are_made_up_for() {
    for action in [
        Action::Disconnect,
        Action::LoseReply,
        Action::Garble,
        Action::Refuse(Refusal::too_many_requests()),
        Action::Refuse(Refusal::new(StatusCode::CONFLICT)),
    ] {
        let shown = format!("{action:?}");
        let rig = Rig::watching().await;
        let rule = Rule::new(action)
            .resource("configmaps")
            .verb("patch")
            .times(3);
        rig.cluster()
            .faults()
            .add(rule.when(|request| request.query.contains("widgeteer")));
        rig.want_all(chain());
        rig.bench.create("a", 1).await;
        time::sleep(30 * SECOND).await;
        open(&rig, "one", Some("yes")).await;
        time::sleep(30 * SECOND).await;
        open(&rig, "two", Some("yes")).await;
        time::sleep(30 * SECOND).await;
        assert_eq!(there(&rig).await, ["one", "three", "two"], "{shown}");
        assert!(rig.last().unwrap().is_ready(), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_process_goes_on_where_the_first_has_stopped() {
    let mut rig = rig_with(chain()).await;
    open(&rig, "one", Some("yes")).await;
    assert_eq!(there(&rig).await, ["one", "two"]);
    rig.cluster().journal().clear();
    rig.restart(true).await;
    assert_eq!(rig.writes("configmaps"), 0);
    open(&rig, "two", Some("yes")).await;
    assert_eq!(there(&rig).await, ["one", "three", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_ready_object_that_is_deleted_is_made_again_before_others_go_on() {
    let rig = rig_with(chain()).await;
    open(&rig, "one", Some("yes")).await;
    open(&rig, "two", Some("yes")).await;
    let api = rig.config_maps();
    api.delete("one", &DeleteParams::default()).await.unwrap();
    settle().await;
    let applied = rig.last().unwrap();
    assert!(
        applied.to_string().contains("step second waits for first"),
        "{applied}"
    );
    assert_eq!(there(&rig).await, ["one", "three", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_is_refused_keeps_those_before_it() {
    let rig = rig_with(chain()).await;
    open(&rig, "one", Some("yes")).await;
    open(&rig, "two", Some("yes")).await;
    let refused = Rule::new(Action::Refuse(Refusal::new(StatusCode::FORBIDDEN)));
    let rule = refused.resource("configmaps").verb("delete").name("three");
    let rule = rig.cluster().faults().add(rule);
    rig.apply_all(Desired::new()).await;
    let error = rig.last().unwrap_err();
    assert_eq!(error.applied().waiting().len(), 2, "{error}");
    assert_eq!(there(&rig).await, ["one", "three", "two"]);
    rig.cluster().faults().remove(rule);
    time::sleep(60 * SECOND).await;
    assert_eq!(there(&rig).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_after_its_deletion_counts_as_there() {
    let rig = rig_with(chain()).await;
    open(&rig, "one", Some("yes")).await;
    open(&rig, "two", Some("yes")).await;
    // The first read precedes the deletion.
    let refused = Rule::new(Action::Refuse(Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
    )));
    let rule = refused.resource("configmaps").verb("get").name("three");
    let rule = rig.cluster().faults().add(rule.skip(1));
    rig.calls();
    rig.apply_all(Desired::new()).await;
    let calls = rig.calls();
    assert!(
        calls[0].contains("default/two is deleted once the objects of later steps are deleted"),
        "{calls:?}"
    );
    rig.cluster().faults().remove(rule);
    rig.kick().await;
    assert_eq!(there(&rig).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_read_is_read_again_without_another_change() {
    let rig = rig_with(
        Desired::new()
            .step(Step::new("server").with_value(deployment("db", 1).value().clone()))
            .step(
                Step::new("client")
                    .after("server")
                    .with_value(config("web", "1")),
            ),
    )
    .await;
    let refused = Rule::new(Action::Refuse(Refusal::new(StatusCode::FORBIDDEN)));
    let rule = refused.resource("deployments").verb("get").times(1);
    let rule = rig.cluster().faults().add(rule);
    let api: Api<Deployment> = Api::namespaced(rig.cluster().client(), "default");
    let status = Patch::Merge(json!({"status": {"observedGeneration": 1, "replicas": 1,
        "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}));
    let params = PatchParams::default();
    api.patch_status("db", &params, &status).await.unwrap();
    settle().await;
    assert_eq!(rig.cluster().faults().hits(rule), 1);
    assert!(rig.config_map("web").await.is_none());
    time::sleep(11 * SECOND).await;
    assert!(rig.config_map("web").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_timeout_in_the_middle_leaves_a_state_from_which_it_goes_on() {
    let rig = Rig::watching().await;
    let slow = Rule::new(Action::Delay(1000 * SECOND))
        .resource("configmaps")
        .verb("patch");
    let slow = rig.cluster().faults().add(slow.name("three"));
    rig.want_all(chain());
    rig.bench.create("a", 1).await;
    settle().await;
    open(&rig, "one", Some("yes")).await;
    open(&rig, "two", Some("yes")).await;
    // The client gives up, and the call fails.
    time::sleep(70 * SECOND).await;
    assert!(rig.last().is_err());
    rig.cluster().faults().remove(slow);
    time::sleep(100 * SECOND).await;
    assert_eq!(there(&rig).await, ["one", "three", "two"]);
}

#[tokio::test(start_paused = true)]
async fn readiness_functions_see_the_whole_object_although_the_cache_has_not() {
    // Without watches every object is read.
    let rig = Rig::blind().await;
    rig.want_all(
        Desired::new()
            .step(Step::new("first").with_dependent(gate("one")))
            .step(
                Step::new("second")
                    .after("first")
                    .with_value(json!({"apiVersion": "v1",
                "kind": "Secret", "metadata": {"name": "two"}})),
            ),
    );
    rig.bench.create("a", 1).await;
    settle().await;
    open(&rig, "one", Some("yes")).await;
    rig.kick().await;
    let applied = rig.last().unwrap();
    assert!(
        applied.waiting().is_empty() && applied.is_ready(),
        "{applied}"
    );
}
