//! Tests of sets with failing requests.

use std::time::Duration;

use kube::api::{Api, DeleteParams};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_operator::Action as Done;
use serde_json::json;
use tokio::time;

use crate::apply_rig::{Rig, config, service};
use crate::bench::{SECOND, settle};

#[tokio::test(start_paused = true)]
async fn one_failure_stops_neither_the_others_nor_the_report() {
    let rig = Rig::watching().await;
    rig.want([config("old", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    let unserved = json!({"apiVersion": "no.dev/v1", "kind": "Nothing", "metadata": {"name": "x"}});
    let invalid = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bad"},
        "spec": {"ports": [{"port": 700_000}]}});
    let nameless = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}});
    rig.apply([
        unserved,
        invalid,
        nameless,
        config("twice", "1"),
        config("twice", "2"),
        config("good", "1"),
    ])
    .await;
    let error = rig.last().unwrap_err();
    let text = error.to_string();
    for part in [
        "cannot apply 4 objects of the set \"things\"",
        "no.dev/v1 Nothing x",
        "v1 Service default/bad: it is invalid",
        "a v1 Pod of the set cannot be applied: it has no `metadata.name`",
        "v1 ConfigMap default/twice: it is in the set more than once",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!error.is_terminal(), "the kind may come to be served");
    assert!(rig.config_map("good").await.is_some());
    assert!(
        rig.config_map("old").await.is_some(),
        "nothing is pruned in such a call"
    );
    rig.apply([config("good", "1")]).await;
    assert!(rig.config_map("old").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_field_with_a_wrong_name_is_named_and_retried_after_five_minutes() {
    let rig = Rig::watching().await;
    let typo =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "dat": {}});
    rig.want([typo]);
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.last().unwrap_err();
    let expected = "v1 ConfigMap default/web: it does not fit the schema of its kind: .dat: field not declared in \
                    schema; check the spelling of the field";
    assert!(error.to_string().ends_with(expected), "{error}");
    assert!(!error.is_terminal());
    time::sleep(Duration::from_secs(299)).await;
    assert!(rig.calls().is_empty());
    time::sleep(Duration::from_secs(2)).await;
    assert_eq!(rig.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_tried_again_until_all_is_there() {
    for action in [
        Action::Refuse(Refusal::too_many_requests()),
        Action::Refuse(Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE)),
        Action::Refuse(Refusal::new(http::StatusCode::CONFLICT)),
        Action::Disconnect,
        Action::LoseReply,
        Action::Garble,
        Action::Reject("not today".to_owned()),
    ] {
        let rig = Rig::watching().await;
        let shown = format!("{action:?}");
        // Writes whose responses were lost are found done.
        let is_done = matches!(action, Action::LoseReply | Action::Garble);
        let hits = if is_done { 2 } else { 3 };
        let rule = Rule::new(action)
            .resource("configmaps")
            .verb("patch")
            .times(3);
        let rule = rig.cluster().faults().add(rule);
        rig.want([config("one", "1"), config("two", "2"), service("web", 80)]);
        rig.bench.create("a", 1).await;
        time::sleep(20 * SECOND).await;
        assert_eq!(rig.cluster().faults().hits(rule), hits, "{shown}");
        for name in ["one", "two"] {
            assert!(rig.config_map(name).await.is_some(), "{shown}");
        }
        let last = rig.last().unwrap();
        assert_eq!(last.objects().len(), 3, "{shown}");
        rig.cluster().journal().clear();
        rig.kick().await;
        assert_eq!(
            rig.writes("configmaps") + rig.writes("services"),
            0,
            "{shown}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn set_with_an_object_that_is_too_large_is_retried_slowly() {
    let refuse = |code, name: &str| {
        let refusal = Refusal::new(http::StatusCode::from_u16(code).expect("it is one"));
        let rule = Rule::new(Action::Refuse(refusal)).resource("configmaps");
        rule.verb("patch").name(name)
    };
    let rig = Rig::watching().await;
    rig.cluster().faults().add(refuse(413, "big"));
    let busy = rig.cluster().faults().add(refuse(503, "busy"));
    rig.want([config("big", "1"), config("busy", "1")]);
    rig.bench.create("a", 1).await;
    time::sleep(60 * SECOND).await;
    assert!(rig.cluster().faults().hits(busy) > 3, "it is tried again");
    rig.cluster().faults().remove(busy);
    time::sleep(300 * SECOND).await;
    assert!(rig.config_map("busy").await.is_some());
    rig.cluster().journal().clear();
    time::sleep(3600 * SECOND).await;
    let writes = rig.writes("configmaps");
    assert!((11..=13).contains(&writes), "every five minutes: {writes}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_short_is_finished_by_the_next() {
    let mut rig = Rig::watching().await;
    let slow = Action::Delay(Duration::from_secs(600));
    let rule = Rule::new(slow).resource("configmaps").verb("patch").skip(1);
    rig.cluster().faults().add(rule);
    rig.want([config("one", "1"), config("two", "2"), config("three", "3")]);
    rig.bench.create("a", 1).await;
    settle().await;
    // The grace period ends before the answers come, and the calls are dropped.
    let _ = rig.bench.operator.stop().await;
    rig.cluster().faults().clear();
    rig.restart(true).await;
    for name in ["one", "two", "three"] {
        assert!(rig.config_map(name).await.is_some(), "{name}");
    }
    rig.apply([config("one", "1")]).await;
    assert!(rig.config_map("three").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_prune_that_is_refused_is_done_later() {
    let rig = Rig::watching().await;
    rig.want([config("one", "1"), config("two", "2")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let refuse = Action::Refuse(Refusal::new(http::StatusCode::INTERNAL_SERVER_ERROR));
    let rule = Rule::new(refuse)
        .resource("configmaps")
        .verb("delete")
        .times(1);
    rig.cluster().faults().add(rule);
    rig.want([]);
    rig.kick().await;
    time::sleep(5 * SECOND).await;
    assert!(rig.config_map("one").await.is_none());
    assert!(rig.config_map("two").await.is_none());
    let calls = rig.calls();
    assert!(
        calls.iter().any(|call| call.contains("cannot delete it")),
        "{calls:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_goes_meanwhile_leaves_nothing_behind() {
    let rig = Rig::watching().await;
    let slow = Action::Delay(5 * SECOND);
    let rule = Rule::new(slow)
        .resource("configmaps")
        .verb("patch")
        .times(1);
    rig.cluster().faults().add(rule);
    rig.want([config("one", "1"), service("web", 80)]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.bench.delete("a").await;
    time::sleep(60 * SECOND).await;
    assert!(
        rig.config_map("one").await.is_none(),
        "the garbage collector took it"
    );
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_created_again_is_not_taken_for_the_old_one() {
    let rig = Rig::watching().await;
    let recreate = Action::Recreate("a".to_owned());
    let rule = Rule::new(recreate)
        .resource("widgets")
        .verb("patch")
        .times(1);
    rig.cluster().faults().add(rule);
    rig.want([config("one", "1")]);
    rig.bench.create("a", 1).await;
    settle().await;
    let calls = rig.calls();
    assert!(
        calls[0].contains("demo.dev/v1 Widget default/a: it no longer exists; nothing was applied"),
        "{calls:?}"
    );
    assert_eq!(calls.last().map(String::as_str), Some("1 unchanged"));
    let one = rig.config_map("one").await.unwrap();
    let owner = rig.bench.get("a").await.unwrap().metadata.uid;
    assert_eq!(
        Some(&one.metadata.owner_references.unwrap()[0].uid),
        owner.as_ref()
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_being_deleted_is_said_to_be() {
    let rig = Rig::watching().await;
    rig.setup(lariat_operator::Apply::without_owner);
    rig.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}))
        .await;
    let mut held = config("held", "1");
    held["metadata"]["namespace"] = json!("shop");
    held["metadata"]["finalizers"] = json!(["demo.dev/hold"]);
    rig.create(held).await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(rig.cluster().client());
    namespaces
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    settle().await;
    let mut wanted = config("web", "1");
    wanted["metadata"]["namespace"] = json!("shop");
    rig.want([wanted]);
    rig.bench.create("a", 1).await;
    settle().await;
    let error = rig.failure();
    assert!(
        error.contains("shop/web: its namespace is being deleted"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_definition_and_its_objects_can_be_in_one_set() {
    let rig = Rig::blind().await;
    rig.setup(lariat_operator::Apply::without_owner);
    let definition = lariat_cluster::testing::crd("gadgets.dev", "v1", "Gadget")
        .value()
        .clone();
    let gadget =
        json!({"apiVersion": "gadgets.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}});
    rig.want([gadget, definition]);
    rig.bench.create("a", 1).await;
    time::sleep(60 * SECOND).await;
    let last = rig.last().unwrap();
    assert_eq!(last.objects().len(), 2, "{last}");
    assert_eq!(last.count(Done::Pruned), 0);
}

#[tokio::test(start_paused = true)]
async fn contents_of_secrets_stay_out_of_errors() {
    let rig = Rig::watching().await;
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
        "type": "Opaque", "data": {"password": value}, "immutable": true})
    };
    rig.want([secret("aHVudGVyMg==")]);
    rig.bench.create("a", 1).await;
    settle().await;
    rig.calls();
    rig.apply([secret("c2VjcmV0")]).await;
    let mut bad = secret("not base64: hunter2");
    bad["metadata"]["name"] = json!("bad");
    let first = rig.failure();
    rig.apply([bad]).await;
    let second = rig.failure();
    // Admission control may quote the refused object, with any code.
    let rejects = Rule::new(Action::Reject("hunter2 is no password".to_owned()));
    rig.cluster()
        .faults()
        .add(rejects.resource("secrets").verb("patch"));
    let mut other = secret("c2VjcmV0");
    other["metadata"]["name"] = json!("other");
    rig.apply([other]).await;
    let third = format!("{:?}", rig.last().unwrap_err());
    assert!(third.contains("Forbidden"), "{third}");
    for error in [first, second, third] {
        for value in ["aHVudGVyMg", "c2VjcmV0", "hunter2"] {
            assert!(!error.contains(value), "{error}");
        }
    }
}
