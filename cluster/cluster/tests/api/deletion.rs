//! What a deletion comes to.

use std::time::Duration;

use http::{Method, StatusCode};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bench::{Answer, Bench, CONFIG_MAPS, DEFINITIONS, text, version};
use crate::kinds::definition;

const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

/// A cluster without garbage collection, so that objects that wait for it stay.
async fn bench() -> Bench {
    let bench = Bench::new().await;
    bench.cluster.control().pause_garbage_collection();
    bench
}

impl Bench {
    pub(crate) async fn delete_with(&self, path: &str, options: Value) -> Answer {
        let media = "application/json";
        self.call(Method::DELETE, path, media, options.to_string())
            .await
    }
}

#[tokio::test(start_paused = true)]
async fn propagation_puts_on_the_finalizer_that_the_owner_waits_under() {
    let bench = bench().await;
    for (name, before, policy, expected) in [
        ("a", json!([]), "Foreground", json!(["foregroundDeletion"])),
        ("b", json!([]), "Orphan", json!(["orphan"])),
        (
            "c",
            json!(["demo.dev/x", "orphan"]),
            "Foreground",
            json!(["demo.dev/x", "foregroundDeletion"]),
        ),
        (
            "d",
            json!(["demo.dev/x", "orphan"]),
            "Background",
            json!(["demo.dev/x"]),
        ),
    ] {
        let object = json!({"metadata": {"name": name, "finalizers": before}});
        assert_eq!(
            bench.post(CONFIG_MAPS, &object).await.code,
            StatusCode::CREATED
        );
        let path = format!("{CONFIG_MAPS}/{name}");
        let answer = bench
            .delete_with(&path, json!({"propagationPolicy": policy}))
            .await
            .json();
        assert_eq!(answer["metadata"]["finalizers"], expected, "{name}");
        assert_eq!(
            answer["metadata"]["deletionGracePeriodSeconds"], 0,
            "{name}"
        );
        assert_eq!(bench.get(&path).await.json(), answer, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_of_an_object_says_what_was_asked_for_before() {
    let bench = bench().await;
    let object = json!({"metadata": {"name": "a", "finalizers": ["foregroundDeletion"]}});
    bench.post(CONFIG_MAPS, &object).await;
    let path = format!("{CONFIG_MAPS}/a");
    let marked = bench.delete(&path).await.json();
    assert_eq!(
        marked["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    let orphaned = bench
        .delete(&format!("{path}?propagationPolicy=Orphan"))
        .await
        .json();
    assert_eq!(orphaned["metadata"]["finalizers"], json!(["orphan"]));
    assert_eq!(
        bench
            .delete(&format!("{path}?propagationPolicy=Background"))
            .await
            .json()["kind"],
        "Status"
    );
    bench.get(&path).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn jobs_are_orphaned_unless_the_client_says_otherwise() {
    let bench = bench().await;
    for (name, options, finalizers) in [
        ("a", json!({}), json!(["orphan"])),
        ("b", json!({"orphanDependents": true}), json!(["orphan"])),
        ("c", json!({"propagationPolicy": "Background"}), json!(null)),
        ("d", json!({"orphanDependents": false}), json!(null)),
    ] {
        let job = json!({"metadata": {"name": name}, "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}});
        let created = bench.post(JOBS, &job).await;
        assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
        let answer = bench.delete_with(&format!("{JOBS}/{name}"), options).await;
        assert_eq!(answer.code, StatusCode::OK);
        assert_eq!(
            answer.json()["metadata"]["finalizers"],
            finalizers,
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_option_of_a_cascade_answers_202_where_something_holds_the_object() {
    let bench = bench().await;
    let object = json!({"metadata": {"name": "a", "finalizers": ["demo.dev/x"]}});
    bench.post(CONFIG_MAPS, &object).await;
    let path = format!("{CONFIG_MAPS}/a");
    let answer = bench
        .delete_with(&path, json!({"orphanDependents": false}))
        .await;
    assert_eq!(answer.code, StatusCode::ACCEPTED);
}

#[tokio::test(start_paused = true)]
async fn options_that_do_not_go_together_are_refused() {
    let bench = bench().await;
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    for (options, field) in [
        (both, "propagationPolicy"),
        (json!({"propagationPolicy": "Bad"}), "propagationPolicy"),
        (json!({"dryRun": ["Some"]}), "dryRun"),
    ] {
        // The options are checked before the object is looked for.
        let status = bench
            .delete_with(&format!("{CONFIG_MAPS}/none"), options)
            .await
            .fails(422, "Invalid");
        assert_eq!(text(&status, "/details/causes/0/field"), field);
        assert_eq!(text(&status, "/details/kind"), "DeleteOptions");
    }
    for body in [
        "{",
        "[]",
        r#"{"kind":"Pod"}"#,
        r#"{"gracePeriodSeconds":"x"}"#,
    ] {
        let path = format!("{CONFIG_MAPS}/none");
        bench
            .call(Method::DELETE, &path, "application/json", body)
            .await
            .fails(400, "BadRequest");
    }
}

#[tokio::test(start_paused = true)]
async fn the_query_counts_only_without_a_body() {
    let bench = bench().await;
    bench.config_map("a", json!({})).await;
    let path = format!("{CONFIG_MAPS}/a?propagationPolicy=Orphan");
    let answer = bench
        .delete_with(&path, json!({"propagationPolicy": "Background"}))
        .await;
    assert_eq!(answer.json()["kind"], "Status");
}

async fn bound_pod(bench: &Bench) -> String {
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let created = bench.post(PODS, &pod).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    format!("{PODS}/p")
}

#[tokio::test(start_paused = true)]
async fn the_grace_period_of_a_pod_is_made_shorter_but_never_longer() {
    let bench = bench().await;
    let path = bound_pod(&bench).await;
    let seconds = |answer: &Value| answer["metadata"]["deletionGracePeriodSeconds"].clone();
    let first = bench.delete(&path).await.json();
    assert_eq!(seconds(&first), 30);
    for options in ["?gracePeriodSeconds=30", "?gracePeriodSeconds=60", ""] {
        let answer = bench.delete(&format!("{path}{options}")).await.json();
        assert_eq!(answer, first, "{options}");
    }
    let shorter = bench
        .delete(&format!("{path}?gracePeriodSeconds=10"))
        .await
        .json();
    assert_eq!(seconds(&shorter), 10);
    assert_eq!(
        shorter["metadata"]["generation"],
        first["metadata"]["generation"]
    );
    let at = |answer: &Value| -> jiff::Timestamp {
        text(answer, "/metadata/deletionTimestamp").parse().unwrap()
    };
    assert_eq!(at(&first).duration_since(at(&shorter)).as_secs(), 20);
    let negative = bench
        .delete(&format!("{path}?gracePeriodSeconds=-1"))
        .await
        .json();
    assert_eq!(seconds(&negative), 1, "a negative period is one second");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_grace_period_is_not_moved_into_the_past() {
    let bench = bench().await;
    let path = bound_pod(&bench).await;
    let parts = |answer: &Value| {
        let at: jiff::Timestamp = text(answer, "/metadata/deletionTimestamp").parse().unwrap();
        (at, answer["metadata"]["deletionGracePeriodSeconds"].clone())
    };
    let long = bench
        .delete(&format!("{path}?gracePeriodSeconds=300"))
        .await;
    let (end, seconds) = parts(&long.json());
    assert_eq!(seconds, 300);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let shorter = bench.delete(&format!("{path}?gracePeriodSeconds=10")).await;
    let (now, seconds) = parts(&shorter.json());
    assert_eq!(seconds, 1, "the ten seconds are over");
    assert_eq!(end.duration_since(now).as_secs(), 240);
    let mut watch = bench.watch(&format!("{PODS}?watch=1")).await;
    watch.event().await;
    let none = bench.delete(&format!("{path}?gracePeriodSeconds=0")).await;
    let (last, seconds) = parts(&none.json());
    assert_eq!((last, seconds), (now, json!(0)));
    assert_eq!(watch.shorts(2).await, ["MODIFIED p", "DELETED p"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_time_left_takes_another_propagation() {
    let bench = bench().await;
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    let metadata = json!({"name": "p", "finalizers": ["demo.dev/x"]});
    let pod = json!({"metadata": metadata, "spec": spec});
    bench.post(PODS, &pod).await;
    let path = format!("{PODS}/p");
    let marked = bench.delete(&format!("{path}?gracePeriodSeconds=0")).await;
    let marked = marked.json();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    for (policy, finalizers) in [
        ("Foreground", json!(["demo.dev/x", "foregroundDeletion"])),
        ("Background", json!(["demo.dev/x"])),
    ] {
        let options = json!({"propagationPolicy": policy});
        let again = bench.delete_with(&path, options).await.json();
        assert_eq!(again["metadata"]["finalizers"], finalizers);
        let member = "/metadata/deletionTimestamp";
        assert_eq!(text(&again, member), text(&marked, member));
    }
    let before = bench.get(&path).await.json();
    let unchanged = bench
        .delete(&format!("{path}?orphanDependents=false"))
        .await;
    assert_eq!(unchanged.code, StatusCode::ACCEPTED);
    assert_eq!(unchanged.json(), before, "nothing is written");
}

#[tokio::test(start_paused = true)]
async fn the_old_option_of_a_cascade_answers_202_during_a_grace_period() {
    let bench = bench().await;
    let path = bound_pod(&bench).await;
    let first = bench.delete(&path).await;
    assert_eq!(first.code, StatusCode::OK);
    let again = bench
        .delete(&format!("{path}?orphanDependents=false"))
        .await;
    assert_eq!(again.code, StatusCode::ACCEPTED);
    assert_eq!(again.json(), first.json());
}

#[tokio::test(start_paused = true)]
async fn namespaces_and_definitions_have_their_own_words_for_preconditions() {
    let bench = bench().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let namespaces = "/api/v1/namespaces";
    bench
        .post(namespaces, &json!({"metadata": {"name": "a"}}))
        .await;
    let crd = "customresourcedefinitions.apiextensions.k8s.io";
    for (list, name, resource) in [
        (namespaces, "a", "namespaces"),
        (DEFINITIONS, "widgets.demo.dev", crd),
    ] {
        let path = format!("{list}/{name}");
        let object = bench.get(&path).await.json();
        for (member, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let options = json!({"preconditions": {member: "7"}});
            let status = bench
                .delete_with(&path, options)
                .await
                .fails(409, "Conflict");
            let is = text(&object["metadata"], &format!("/{member}")).to_owned();
            let expected = format!(
                "Operation cannot be fulfilled on {resource} {name:?}: Precondition failed: {what} in precondition: 7, \
                 {what} in object meta: {is}"
            );
            assert_eq!(text(&status, "/message"), expected);
            let (kind, _) = resource.split_once('.').unwrap_or((resource, ""));
            assert_eq!(text(&status, "/details/kind"), kind);
        }
    }
    // A collection is deleted past the storage that has these words.
    let options = json!({"preconditions": {"uid": "7"}});
    let refused = bench.delete_with(DEFINITIONS, options).await;
    let status = refused.fails(409, "Conflict");
    let message = text(&status, "/message");
    assert!(
        message.contains("the UID in the precondition (7) does not match"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_is_marked_for_watchers_first() {
    let bench = bench().await;
    let path = bound_pod(&bench).await;
    let pod = bench.get(&path).await.json();
    let mut watch = bench
        .watch(&format!("{PODS}?watch=1&resourceVersion={}", version(&pod)))
        .await;
    let answer = bench
        .delete(&format!("{path}?gracePeriodSeconds=0"))
        .await
        .json();
    assert_eq!(answer["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(watch.shorts(2).await, ["MODIFIED p", "DELETED p"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_what_would_happen_and_does_nothing() {
    let bench = bench().await;
    let path = bound_pod(&bench).await;
    let before = bench.get(&path).await.json();
    let shown = bench
        .delete_with(&path, json!({"dryRun": ["All"]}))
        .await
        .json();
    assert_eq!(shown["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(bench.get(&path).await.json(), before);
    bench.config_map("a", json!({})).await;
    let collection = bench
        .delete_with(CONFIG_MAPS, json!({"dryRun": ["All"]}))
        .await
        .json();
    assert_eq!(collection["items"][0]["metadata"]["name"], "a");
    assert_eq!(
        bench.get(&format!("{CONFIG_MAPS}/a")).await.code,
        StatusCode::OK
    );
}

#[tokio::test(start_paused = true)]
async fn owner_references_are_complete() {
    let bench = bench().await;
    let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]);
    let object = json!({"metadata": {"name": "a", "ownerReferences": owners}});
    let status = bench.post(CONFIG_MAPS, &object).await.fails(422, "Invalid");
    let cause = "/details/causes/0/field";
    assert_eq!(text(&status, cause), "metadata.ownerReferences.uid");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a client sends as options, the response names what is wrong with them.
    #[test]
    fn no_options_break_the_server(body in "\\PC{0,40}|[{\\[]\"(kind|dryRun|preconditions|gracePeriodSeconds)\":[-0-9a-z\"\\[\\]{}]{0,20}}") {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime starts");
        runtime.block_on(async {
            let bench = bench().await;
            let path = format!("{CONFIG_MAPS}/none");
            let answer = bench.call(Method::DELETE, &path, "application/json", body).await;
            assert!(answer.code.is_client_error(), "{}", answer.text);
        });
    }
}
