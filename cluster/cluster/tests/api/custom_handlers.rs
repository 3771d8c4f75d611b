//! What the handlers of custom resources do otherwise than those of built-in kinds.

use crate::bench::{Bench, CONFIG_MAPS, text};
use crate::kinds::{WIDGETS, definition, widget};
use http::Method;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_its_types_has_no_owners() {
    let items = json!({"type": "object", "required": ["type"],
        "properties": {"type": {"type": "string"}}});
    let conditions = json!({"type": "array", "items": items,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]});
    let status = json!({"type": "object", "properties": {"conditions": conditions}});
    let mut definition = definition("widgets", "Widget", "Namespaced");
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"] = json!({"status": status});
    }
    let bench = Bench::new().await;
    bench.define(&definition).await;
    let created = bench.post(WIDGETS, &widget("a")).await.json();
    assert!(created["metadata"]["managedFields"].is_array());
    let mut sent = created.clone();
    sent["metadata"]["labels"] = json!({"a": "b"});
    sent["status"] = json!({"conditions": [{}]});
    let updated = bench.put(&format!("{WIDGETS}/a"), &sent).await.json();
    assert_eq!(updated["metadata"]["labels"], json!({"a": "b"}));
    assert!(updated["metadata"]["managedFields"].is_null());
}

#[tokio::test(start_paused = true)]
async fn handlers_of_custom_resources_find_out_late_what_has_no_name() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let call = |method: Method, path: String, media: &'static str| {
        let bench = &bench;
        async move {
            let body = widget("a").to_string();
            bench
                .ask(method, &path, &[("content-type", media)], body)
                .await
        }
    };
    let json = "application/json";
    let put = call(Method::PUT, WIDGETS.to_owned(), json).await;
    assert_eq!(
        put.fails(400, "BadRequest")["message"],
        "name must be provided"
    );
    let patch = call(Method::PATCH, WIDGETS.to_owned(), json).await;
    patch.fails(415, "UnsupportedMediaType");
    let merge = "application/merge-patch+json";
    let patch = call(Method::PATCH, WIDGETS.to_owned(), merge).await;
    assert_eq!(
        patch.fails(400, "BadRequest")["message"],
        "name must be provided"
    );
    let odd = Method::from_bytes(b"NONSENSE").unwrap();
    let odd = call(odd, WIDGETS.to_owned(), json).await;
    let status = odd.fails(405, "MethodNotAllowed");
    assert_eq!(
        status["details"],
        json!({"group": "demo.dev", "kind": "widgets"})
    );
    let created = call(Method::POST, format!("{WIDGETS}/ignored"), json).await;
    assert_eq!(text(&created.json(), "/metadata/name"), "a");
}

#[tokio::test(start_paused = true)]
async fn head_is_answered_as_get_for_custom_resources_alone() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench.post(WIDGETS, &widget("a")).await;
    bench.config_map("a", json!({})).await;
    for (path, code) in [
        (WIDGETS.to_owned(), 200),
        (format!("{WIDGETS}/a"), 200),
        (format!("{WIDGETS}/b"), 404),
        (CONFIG_MAPS.to_owned(), 405),
        (format!("{CONFIG_MAPS}/a"), 405),
    ] {
        let answer = bench.call(Method::HEAD, &path, "", "").await;
        assert_eq!(answer.code, code, "{path}: {}", answer.text);
    }
}
