//! Create, update, patch and delete.

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use http::{Method, StatusCode};
use serde_json::json;

const ONE: &str = "/api/v1/namespaces/default/configmaps/a";

#[tokio::test(start_paused = true)]
async fn a_created_object_gets_what_only_the_server_sets() {
    let bench = Bench::new().await;
    let sent = json!({
        "metadata": {
            "name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z",
        },
        "data": {"k": "v"},
    });
    let created = bench.post(CONFIG_MAPS, &sent).await.json();
    assert_ne!(text(&created, "/metadata/uid"), "mine");
    assert_ne!(
        text(&created, "/metadata/creationTimestamp"),
        "2001-01-01T00:00:00Z"
    );
    assert_eq!(
        (text(&created, "/kind"), text(&created, "/apiVersion")),
        ("ConfigMap", "v1")
    );
    assert_eq!(bench.get(ONE).await.json(), created);
}

#[tokio::test(start_paused = true)]
async fn a_generation_is_kept_where_the_server_counts_none() {
    let bench = Bench::new().await;
    let object = json!({"metadata": {"name": "a", "generation": 5}});
    let created = bench.post(CONFIG_MAPS, &object).await.json();
    assert_eq!(created["metadata"]["generation"], 5);
    let mut changed = created.clone();
    changed["metadata"]["generation"] = 7.into();
    changed["data"] = json!({"k": "v"});
    let updated = bench.put(ONE, &changed).await.json();
    assert_eq!(updated["metadata"]["generation"], 5);
}

#[tokio::test(start_paused = true)]
async fn generated_names_differ() {
    let bench = Bench::new().await;
    let sent = json!({"metadata": {"generateName": "job-"}});
    let mut names = std::collections::HashSet::new();
    for _ in 0..50 {
        let created = bench.post(CONFIG_MAPS, &sent).await.json();
        assert!(names.insert(text(&created, "/metadata/name").to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn creation_is_refused_with_the_reason() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let named = |name: &str| json!({"metadata": {"name": name}});

    let status = bench
        .post(CONFIG_MAPS, &named("a"))
        .await
        .fails(409, "AlreadyExists");
    assert_eq!(status["message"], "configmaps \"a\" already exists");
    let status = bench
        .post("/api/v1/namespaces/none/configmaps", &named("a"))
        .await;
    assert_eq!(
        status.fails(404, "NotFound")["message"],
        "namespaces \"none\" not found"
    );
    let status = bench
        .post(CONFIG_MAPS, &named("Bad_Name"))
        .await
        .fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.name");
    bench
        .post(CONFIG_MAPS, &json!({"metadata": {}}))
        .await
        .fails(422, "Invalid");
    bench
        .post(CONFIG_MAPS, &json!({"kind": "Secret"}))
        .await
        .fails(400, "BadRequest");
    let elsewhere = json!({"metadata": {"name": "b", "namespace": "kube-system"}});
    bench
        .post(CONFIG_MAPS, &elsewhere)
        .await
        .fails(400, "BadRequest");
    let labelled = json!({"metadata": {"name": "b", "labels": {"a b": "c"}}});
    bench
        .post(CONFIG_MAPS, &labelled)
        .await
        .fails(422, "Invalid");

    let send = async |media: &str, body: &str| {
        bench
            .call(Method::POST, CONFIG_MAPS, media, body.to_owned())
            .await
    };
    send("application/json", "{").await.fails(400, "BadRequest");
    send("application/json", "[]")
        .await
        .fails(400, "BadRequest");
    send("text/plain", "{}")
        .await
        .fails(415, "UnsupportedMediaType");
    #[cfg(not(feature = "protobuf"))]
    send("application/vnd.kubernetes.protobuf", "k8s\0")
        .await
        .fails(415, "UnsupportedMediaType");
    let large = format!(r#"{{"data":{{"a":"{}"}}}}"#, "x".repeat(3 << 20));
    send("application/json", &large)
        .await
        .fails(413, "RequestEntityTooLarge");
}

#[tokio::test(start_paused = true)]
async fn an_update_must_be_based_on_the_present_version() {
    let bench = Bench::new().await;
    let first = bench.config_map("a", json!({})).await;
    let mut changed = first.clone();
    changed["data"]["a"] = "2".into();
    let second = bench.put(ONE, &changed).await.json();
    assert!(version(&second) > version(&first));

    let status = bench.put(ONE, &changed).await.fails(409, "Conflict");
    assert!(text(&status, "/message").contains("the object has been modified"));
    assert_eq!(
        bench.put(ONE, &second).await.json(),
        second,
        "a no-op keeps the version"
    );

    let unconditional = json!({"metadata": {"name": "a"}, "data": {"b": "3"}});
    assert_eq!(
        bench.put(ONE, &unconditional).await.json()["data"],
        json!({"b": "3"})
    );
    let other = json!({"metadata": {"name": "a", "uid": "another"}});
    bench.put(ONE, &other).await.fails(409, "Conflict");
    bench
        .put(ONE, &json!({"metadata": {"name": "b"}}))
        .await
        .fails(400, "BadRequest");
    let missing = format!("{CONFIG_MAPS}/missing");
    bench
        .put(&missing, &json!({"metadata": {"name": "missing"}}))
        .await
        .fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_created_by_put_and_updated_only_with_its_version() {
    let bench = Bench::new().await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    assert_eq!(bench.put(path, &lease).await.code, StatusCode::CREATED);
    let status = bench.put(path, &lease).await.fails(422, "Invalid");
    assert!(text(&status, "/message").contains("must be specified for an update"));
}

#[tokio::test(start_paused = true)]
async fn merge_patches_change_what_they_name() {
    let bench = Bench::new().await;
    let first = bench.config_map("a", json!({"x": "1"})).await;
    let patched = bench
        .merge(ONE, json!({"metadata": {"labels": {"x": null, "y": "2"}}}))
        .await
        .json();
    assert_eq!(patched["metadata"]["labels"], json!({"y": "2"}));
    assert_eq!(patched["data"], first["data"]);

    let stale = json!({"metadata": {"resourceVersion": text(&first, "/metadata/resourceVersion")}});
    bench.merge(ONE, stale).await.fails(409, "Conflict");
    bench
        .merge(ONE, json!({"metadata": {"uid": "x"}}))
        .await
        .fails(422, "Invalid");
    bench
        .merge(ONE, json!({"metadata": {"name": "b"}}))
        .await
        .fails(400, "BadRequest");
    bench.merge(ONE, json!([])).await.fails(400, "BadRequest");
    bench
        .merge(&format!("{CONFIG_MAPS}/missing"), json!({}))
        .await
        .fails(404, "NotFound");
    let answer = bench
        .call(Method::PATCH, ONE, "application/apply-patch+yaml", "{}")
        .await;
    answer.fails(422, "Invalid");
    let answer = bench
        .call(Method::PATCH, ONE, "application/x-patch", "{}")
        .await;
    answer.fails(415, "UnsupportedMediaType");
}

#[tokio::test(start_paused = true)]
async fn json_patches_apply_as_a_whole_or_not_at_all() {
    let bench = Bench::new().await;
    let first = bench.config_map("a", json!({})).await;
    let refused = json!([
        {"op": "add", "path": "/data/b", "value": "2"}, {"op": "remove", "path": "/data/missing"},
    ]);
    bench.json_patch(ONE, refused).await.fails(422, "Invalid");
    bench
        .json_patch(
            ONE,
            json!([{"op": "test", "path": "/data/a", "value": "9"}]),
        )
        .await
        .fails(422, "Invalid");
    bench
        .json_patch(ONE, json!({"op": "add"}))
        .await
        .fails(400, "BadRequest");
    assert_eq!(bench.get(ONE).await.json(), first);

    // What finalizer libraries send: an absent list passes a test for null.
    let claim = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["demo.dev/hold"]},
    ]);
    let claimed = bench.json_patch(ONE, claim.clone()).await.json();
    assert_eq!(claimed["metadata"]["finalizers"], json!(["demo.dev/hold"]));
    bench.json_patch(ONE, claim).await.fails(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_apart_and_only_spec_counts() {
    let bench = Bench::new().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let path = format!("{deployments}/d");
    let sent = json!({
        "metadata": {"name": "d"}, "status": {"replicas": 9},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    });
    let created = bench.post(deployments, &sent).await.json();
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["status"], json!({}));

    let both = json!({"spec": {"replicas": 2}, "status": {"replicas": 2}});
    let main = bench.merge(&path, both.clone()).await.json();
    assert_eq!(
        (&main["spec"]["replicas"], &main["metadata"]["generation"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(main["status"], json!({}));

    let sent = json!({
        "spec": {"replicas": 5}, "status": {"replicas": 2}, "metadata": {"labels": {"x": "y"}},
    });
    let status = bench.merge(&format!("{path}/status"), sent).await.json();
    assert_eq!(status["status"], json!({"replicas": 2}));
    assert_eq!(
        (
            &status["spec"]["replicas"],
            &status["metadata"]["generation"]
        ),
        (&json!(2), &json!(2))
    );
    assert!(status["metadata"]["labels"].is_null());

    let labelled = bench
        .merge(&path, json!({"metadata": {"labels": {"a": "b"}}}))
        .await
        .json();
    assert_eq!(labelled["metadata"]["generation"], 2);
    bench
        .merge(&format!("{path}/nosub"), json!({}))
        .await
        .fails(404, "NotFound");
    bench
        .merge(&format!("{CONFIG_MAPS}/a/status"), json!({}))
        .await
        .fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_answers_and_checks_what_the_client_means() {
    let bench = Bench::new().await;
    let first = bench.config_map("a", json!({})).await;
    let options = json!({"preconditions": {"uid": "another"}}).to_string();
    let answer = bench
        .call(Method::DELETE, ONE, "application/json", options)
        .await;
    answer.fails(409, "Conflict");
    bench
        .delete(&format!("{ONE}?propagationPolicy=Bad"))
        .await
        .fails(422, "Invalid");
    assert_eq!(
        bench.delete(&format!("{ONE}?dryRun=All")).await.code,
        StatusCode::OK
    );
    assert_eq!(bench.get(ONE).await.json(), first);

    let status = bench.delete(ONE).await.json();
    assert_eq!(
        (&status["status"], &status["details"]["uid"]),
        (&json!("Success"), &first["metadata"]["uid"])
    );
    bench.get(ONE).await.fails(404, "NotFound");
    bench.delete(ONE).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_a_deleted_object() {
    let bench = Bench::new().await;
    let held = json!({"metadata": {"name": "a", "finalizers": ["demo.dev/x", "demo.dev/y"]}});
    bench.post(CONFIG_MAPS, &held).await;
    let marked = bench.delete(ONE).await.json();
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(
        bench.delete(ONE).await.json(),
        marked,
        "a second deletion changes nothing"
    );

    let late = json!({"metadata": {"finalizers": ["demo.dev/x", "demo.dev/late"]}});
    bench.merge(ONE, late).await.fails(422, "Invalid");
    let status = bench
        .post(CONFIG_MAPS, &held)
        .await
        .fails(409, "AlreadyExists");
    assert!(text(&status, "/message").starts_with("object is being deleted"));

    bench
        .merge(ONE, json!({"metadata": {"finalizers": ["demo.dev/y"]}}))
        .await;
    assert_eq!(bench.get(ONE).await.code, StatusCode::OK);
    bench
        .merge(ONE, json!({"metadata": {"finalizers": null}}))
        .await;
    bench.get(ONE).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_pod_has_time_to_end_and_an_unscheduled_one_goes_at_once() {
    let bench = Bench::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    for (name, node) in [("free", json!(null)), ("bound", json!("node-1"))] {
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node,
            "containers": [{"name": "c", "image": "i"}]}});
        let created = bench.post(pods, &pod).await.json();
        assert_eq!(created["status"]["phase"], "Pending");
    }
    assert_eq!(
        bench.delete(&format!("{pods}/free")).await.json()["kind"],
        "Pod"
    );
    bench
        .get(&format!("{pods}/free"))
        .await
        .fails(404, "NotFound");

    let bound = bench.delete(&format!("{pods}/bound")).await.json();
    assert_eq!(bound["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(bound["metadata"]["generation"], 2);
    bench
        .delete(&format!("{pods}/bound?gracePeriodSeconds=0"))
        .await;
    bench
        .get(&format!("{pods}/bound"))
        .await
        .fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_stores_nothing() {
    let bench = Bench::new().await;
    let object = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let answer = bench.post(&path, &object).await;
    assert_eq!(answer.code, StatusCode::CREATED);
    assert!(answer.json()["metadata"]["resourceVersion"].is_null());
    let mut versioned = object.clone();
    versioned["metadata"]["resourceVersion"] = "7".into();
    let answer = bench.post(&path, &versioned).await.json();
    assert_eq!(answer["metadata"]["resourceVersion"], "7");
    bench.get(ONE).await.fails(404, "NotFound");
    bench
        .post(&format!("{CONFIG_MAPS}?dryRun=Bad"), &object)
        .await
        .fails(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn writers_that_race_lose_nothing() {
    let bench = std::sync::Arc::new(Bench::new().await);
    bench.config_map("a", json!({})).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..20 {
        let bench = std::sync::Arc::clone(&bench);
        writers.spawn(async move {
            let patch = json!({"data": {format!("w{writer}"): "1"}});
            assert_eq!(bench.merge(ONE, patch).await.code, StatusCode::OK);
        });
    }
    writers.join_all().await;
    let object = bench.get(ONE).await.json();
    assert_eq!(object["data"].as_object().unwrap().len(), 21);
}

#[tokio::test(start_paused = true)]
async fn job_with_generated_name_has_labels_of_its_template_alone() {
    let bench = Bench::new().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    for (metadata, count) in [
        (json!({"name": "j"}), 5),
        (json!({"generateName": "j-"}), 1),
        (json!({"generateName": "j".repeat(62)}), 1),
    ] {
        let job = json!({"metadata": metadata, "spec": {"template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
        }}});
        let created = bench.post(jobs, &job).await.json();
        let labels = |path: &str| {
            created
                .pointer(path)
                .and_then(|labels| Some(labels.as_object()?.len()))
        };
        assert_eq!(labels("/metadata/labels"), Some(count), "{created:#}");
        assert_eq!(labels("/spec/template/metadata/labels"), Some(5));
    }
}
