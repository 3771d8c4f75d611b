//! Classes that claims and Ingresses get that name none.

use http::StatusCode;
use serde_json::{Value, json};

use crate::bench::Bench;

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/default/ingresses";

async fn created(bench: &Bench, path: &str, object: Value) -> Value {
    let answer = bench.post(path, &object).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    answer.json()
}

#[tokio::test(start_paused = true)]
async fn claims_get_the_default_class_unless_they_ask_for_another_or_none() {
    let bench = Bench::new().await;
    let claim = |name: &str, class: Option<&str>| {
        let spec = json!({
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": class,
        });
        json!({"metadata": {"name": name}, "spec": spec})
    };
    let class = |answer: Value| answer["spec"]["storageClassName"].clone();
    let without = created(&bench, CLAIMS, claim("a", None)).await;
    assert_eq!(class(without), Value::Null);
    for (name, value) in [("b", "true"), ("a", "true"), ("0", "false")] {
        let annotations = json!({"storageclass.kubernetes.io/is-default-class": value});
        let object = json!({
            "metadata": {"name": name, "annotations": annotations}, "provisioner": "x.dev/y",
        });
        created(&bench, "/apis/storage.k8s.io/v1/storageclasses", object).await;
    }
    // Of two that are equally old, the first by name.
    let given = created(&bench, CLAIMS, claim("b", None)).await;
    assert_eq!(class(given), "a");
    let none = created(&bench, CLAIMS, claim("c", Some(""))).await;
    assert_eq!(class(none), "");
    let mut annotated = claim("d", None);
    annotated["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "z"});
    let annotated = created(&bench, CLAIMS, annotated).await;
    assert_eq!(class(annotated), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn ingresses_get_the_default_class_unless_they_name_one() {
    let bench = Bench::new().await;
    let annotations = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let class = json!({
        "metadata": {"name": "a", "annotations": annotations}, "spec": {"controller": "x.dev/y"},
    });
    created(&bench, "/apis/networking.k8s.io/v1/ingressclasses", class).await;
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"defaultBackend": backend}});
    let given = created(&bench, INGRESSES, ingress("a")).await;
    assert_eq!(given["spec"]["ingressClassName"], "a");
    let mut other = ingress("b");
    other["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": "z"});
    let other = created(&bench, INGRESSES, other).await;
    assert_eq!(other["spec"]["ingressClassName"], Value::Null);
}
