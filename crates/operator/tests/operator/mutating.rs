//! Tests of objects that are created, or changed by a function.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use lariat_cache::{KindOptions, Storage, Transform};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_cluster::testing::pod;
use lariat_core::Gvk;
use lariat_operator::{ApiError, CachedApi, Mutation};
use serde_json::{Value, json};

use crate::bench::{Bench, Widget, WidgetStatus, hang_watches, key, settle};

pub(crate) fn empty(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"namespace": "default", "name": name}}))
        .expect("it is one")
}

pub(crate) type Changed = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Sets a value.
pub(crate) fn set(
    name: &'static str,
    value: &'static str,
) -> impl FnMut(&mut ConfigMap) -> Changed + Send {
    move |config| {
        let data = config.data.get_or_insert_default();
        data.insert(name.to_owned(), value.to_owned());
        Ok(())
    }
}

fn writes(bench: &Bench, resource: &str) -> usize {
    let journal = bench.cluster.journal();
    ["create", "update", "patch"]
        .iter()
        .map(|verb| journal.count(verb, resource))
        .sum()
}

/// Changes a ConfigMap as another client.
async fn merge(bench: &Bench, name: &str, patch: Value) {
    let api: Api<ConfigMap> = Api::default_namespaced(bench.cluster.client());
    let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
    let patched = api.patch(name, &params, &patch).await;
    patched.expect("patched");
}

#[tokio::test(start_paused = true)]
async fn what_a_function_wants_is_created_changed_and_left_alone() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    let made = api
        .create_or_update(&empty("a"), set("x", "1"))
        .await
        .unwrap();
    assert_eq!(made.mutation, Mutation::Created);
    assert!(made.object.metadata.uid.is_some(), "as on the server");
    let managers = made.object.metadata.managed_fields.unwrap();
    assert_eq!(managers[0].manager.as_deref(), Some("widgeteer"));
    merge(&bench, "a", json!({"data": {"theirs": "yes"}})).await;
    settle().await;
    let before = writes(&bench, "configmaps");
    for _ in 0..3 {
        let same = api
            .create_or_update(&empty("a"), set("x", "1"))
            .await
            .unwrap();
        assert_eq!(same.mutation, Mutation::Unchanged);
        let same = api
            .create_or_patch(&empty("a"), set("x", "1"))
            .await
            .unwrap();
        assert_eq!(same.mutation, Mutation::Unchanged);
    }
    assert_eq!(writes(&bench, "configmaps"), before, "nothing was sent");
    let made = api
        .create_or_update(&empty("a"), set("x", "2"))
        .await
        .unwrap();
    assert_eq!(made.mutation, Mutation::Updated);
    let made = api
        .create_or_patch(&empty("a"), set("y", "3"))
        .await
        .unwrap();
    assert_eq!(made.mutation, Mutation::Updated);
    let data = made.object.data.unwrap();
    assert_eq!(
        (&*data["x"], &*data["y"], &*data["theirs"]),
        ("2", "3", "yes")
    );
    assert_eq!(
        api.get(&key("a"))
            .await
            .unwrap()
            .data
            .as_ref()
            .unwrap()
            .len(),
        3
    );
    let journal = bench.cluster.journal();
    assert_eq!(
        (
            journal.count("update", "configmaps"),
            journal.count("get", "configmaps")
        ),
        (1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_patch_has_the_changed_fields_and_a_state_to_apply_to() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    api.create_or_patch(&empty("a"), set("x", "1"))
        .await
        .unwrap();
    let secret = Rule::new(Action::Refuse(Refusal::new(StatusCode::BAD_REQUEST))).verb("update");
    bench.cluster.faults().add(secret);
    api.create_or_patch(&empty("a"), set("x", "2"))
        .await
        .unwrap();
    let a = empty("a");
    let removed = api.create_or_patch(&a, |config| {
        config.data = None;
        Ok(())
    });
    let removed = removed.await.unwrap();
    assert_eq!(
        (removed.mutation, removed.object.data),
        (Mutation::Updated, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_stale_cache_leads_to_a_read_and_the_function_sees_the_newest_state() {
    for patches in [false, true] {
        let bench = Bench::new().await;
        hang_watches(&bench, "configmaps");
        let api = bench.operator.api::<ConfigMap>();
        bench.start().await;
        api.create(&empty("a")).await.unwrap();
        tokio::time::sleep(2 * crate::bench::SECOND).await;
        merge(&bench, "a", json!({"data": {"count": "7"}})).await;
        let mut seen = Vec::new();
        let count = |config: &mut ConfigMap| {
            let data = config.data.get_or_insert_default();
            let count = data
                .get("count")
                .map_or(0, |count| count.parse().unwrap_or(0));
            seen.push(count);
            data.insert("count".to_owned(), (count + 1).to_string());
            Ok(())
        };
        let done = if patches {
            api.create_or_patch(&empty("a"), count).await
        } else {
            api.create_or_update(&empty("a"), count).await
        };
        assert_eq!(done.unwrap().object.data.unwrap()["count"], "8");
        assert_eq!(seen, [0, 7]);
        // One that is there and not cached yet, and one that is cached and not there any more.
        let others: Api<ConfigMap> = Api::default_namespaced(bench.cluster.client());
        others
            .create(&PostParams::default(), &empty("b"))
            .await
            .unwrap();
        others.delete("a", &DeleteParams::default()).await.unwrap();
        let done = api
            .create_or_update(&empty("b"), set("x", "1"))
            .await
            .unwrap();
        assert_eq!(done.mutation, Mutation::Updated);
        let done = api
            .create_or_patch(&empty("a"), set("x", "1"))
            .await
            .unwrap();
        assert_eq!(done.mutation, Mutation::Created);
        assert_eq!(
            done.object.data.unwrap().len(),
            1,
            "of the one that is gone nothing is left"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_end_the_tries_at_last() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    api.create(&empty("a")).await.unwrap();
    let conflict = || Rule::new(Action::Refuse(Refusal::new(StatusCode::CONFLICT)));
    let rule = bench
        .cluster
        .faults()
        .add(conflict().verb("update").times(4));
    let done = api
        .create_or_update(&empty("a"), set("x", "1"))
        .await
        .unwrap();
    assert_eq!(done.mutation, Mutation::Updated);
    assert_eq!(bench.cluster.faults().hits(rule), 4);
    let rule = bench.cluster.faults().add(conflict().verb("patch"));
    let error = api
        .create_or_patch(&empty("a"), set("x", "2"))
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    assert_eq!(bench.cluster.faults().hits(rule), 5);
}

#[tokio::test(start_paused = true)]
async fn other_refusals_and_lost_answers_are_not_tried_again_here() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    let refused = Rule::new(Action::Refuse(Refusal::new(StatusCode::FORBIDDEN)));
    let rule = bench.cluster.faults().add(refused.verb("create"));
    let error = api
        .create_or_update(&empty("a"), set("x", "1"))
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot create v1 ConfigMap default/a"),
        "{error}"
    );
    assert_eq!(bench.cluster.faults().hits(rule), 1);
    bench.cluster.faults().clear();
    let lost = Rule::new(Action::LoseReply).verb("create").times(1);
    bench.cluster.faults().add(lost);
    assert!(
        api.create_or_update(&empty("a"), set("x", "1"))
            .await
            .is_err()
    );
    // It was created.
    let done = api
        .create_or_update(&empty("a"), set("x", "1"))
        .await
        .unwrap();
    assert_eq!(done.mutation, Mutation::Unchanged);
    // A namespace that does not exist is no reason to try again.
    let mut elsewhere = empty("a");
    elsewhere.metadata.namespace = Some("nowhere".to_owned());
    let before = writes(&bench, "configmaps");
    assert!(api.create_or_update(&elsewhere, |_| Ok(())).await.is_err());
    assert_eq!(writes(&bench, "configmaps"), before + 1);
}

#[tokio::test(start_paused = true)]
async fn a_function_that_fails_or_renames_sends_nothing() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    let a = empty("a");
    let failing = api.create_or_update(&a, |_| Err("no color".into()));
    let error = failing.await.unwrap_err();
    assert_eq!(
        lariat_core::describe(&error),
        "the function that changes v1 ConfigMap default/a failed: no color"
    );
    let renaming = api.create_or_patch(&a, |config| {
        config.metadata.name = Some("b".to_owned());
        Ok(())
    });
    let error = renaming.await.unwrap_err();
    assert!(matches!(error, ApiError::Renamed { .. }), "{error}");
    let mut nameless = empty("");
    nameless.metadata.name = None;
    nameless.metadata.generate_name = Some("a-".to_owned());
    let error = api
        .create_or_update(&nameless, |_| Ok(()))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("is generated"), "{error}");
    assert_eq!(writes(&bench, "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_status_and_what_the_server_sets_are_not_changed() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Widget>();
    bench.start().await;
    bench.create("a", 1).await;
    bench
        .merge("a", json!({"metadata": {"labels": {"x": "1"}}}))
        .await;
    settle().await;
    let widget = Widget::clone(&*api.get(&key("a")).await.unwrap());
    for patches in [false, true] {
        let meddle = |widget: &mut Widget| {
            widget.status = Some(WidgetStatus {
                size: Some(9),
                ..WidgetStatus::default()
            });
            widget.metadata.generation = Some(99);
            widget.metadata.resource_version = Some("1".to_owned());
            widget.metadata.uid = None;
            Ok(())
        };
        let done = if patches {
            api.create_or_patch(&widget, meddle).await.unwrap()
        } else {
            api.create_or_update(&widget, meddle).await.unwrap()
        };
        assert_eq!(done.mutation, Mutation::Unchanged);
        assert_eq!(done.object.status, None);
    }
    // A kind without a subresource for its status: the definition is one of another kind.
    let definition = lariat_cluster::testing::crd("demo.dev", "v1", "Plain");
    lariat_cluster::testing::define(&bench.cluster.client(), &definition)
        .await
        .unwrap();
    let plain: CachedApi<DynamicObject> =
        CachedApi::new(&bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Plain")));
    let object: DynamicObject =
        serde_json::from_value(json!({"apiVersion": "demo.dev/v1", "kind": "Plain",
        "metadata": {"name": "p", "namespace": "default"}, "spec": {"a": 1}}))
        .unwrap();
    let done = plain.create_or_update(&object, |object| {
        object.data["status"] = json!({"x": 1});
        Ok(())
    });
    assert_eq!(done.await.unwrap().object.data.get("status"), None);
}

#[tokio::test(start_paused = true)]
async fn what_the_cache_does_not_have_is_not_taken_away() {
    let content = KindOptions::default().storage(Storage::OnDemand);
    let trimmed = KindOptions::default().transform(Transform::drop(["/spec"]));
    for options in [content, trimmed] {
        let bench = Bench::new().await.caching(options);
        let api = bench.operator.api::<Widget>();
        bench.start().await;
        let widget = bench.create("a", 7).await;
        settle().await;
        let label = |widget: &mut Widget| {
            let labels = widget.metadata.labels.get_or_insert_default();
            labels.insert("seen".to_owned(), "yes".to_owned());
            Ok(())
        };
        let done = api.create_or_update(&widget, label).await.unwrap();
        assert_eq!(
            (done.mutation, done.object.spec.size),
            (Mutation::Updated, 7)
        );
        assert_eq!(bench.get("a").await.unwrap().spec.size, 7);
    }
}

#[tokio::test(start_paused = true)]
async fn fields_that_the_type_does_not_know_stay() {
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct OldSpec {
        containers: Vec<OldContainer>,
    }
    #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
    struct OldContainer {
        name: String,
        image: String,
    }
    type OldPod = kube::core::Object<OldSpec, Value>;
    let bench = Bench::new().await;
    let pods: CachedApi<OldPod> = CachedApi::new(&bench.factory.for_object::<Pod>().view());
    bench.start().await;
    pod("web").create(&bench.cluster.client()).await.unwrap();
    settle().await;
    let old = OldPod::clone(&*pods.get(&key("web")).await.unwrap());
    let done = pods.create_or_update(&old, |pod| {
        pod.spec.containers[0].image = "other:2".to_owned();
        Ok(())
    });
    done.await.unwrap();
    let api: Api<Pod> = Api::default_namespaced(bench.cluster.client());
    let spec = api.get("web").await.unwrap().spec.unwrap();
    assert_eq!(spec.containers[0].image.as_deref(), Some("other:2"));
    assert!(
        spec.restart_policy.is_some(),
        "the defaults are there: {spec:?}"
    );
    assert!(spec.containers[0].termination_message_path.is_some());
}
