//! The handlers. Each is an async function; the journal only makes them visible.

use k8s_openapi::api::core::v1::Pod;
use lariat::prelude::*;
use lariat_examples::Paint;

use crate::journal::Journal;

/// Reads pods as typed objects.
pub(crate) async fn announce(log: Journal, cx: Context<Pod>) -> HandlerResult {
    let label = |pod: &Pod| pod.metadata.labels.as_ref()?.get("version").cloned();
    match (cx.object()?, cx.deleted()?) {
        (Some(pod), _) => {
            let version = label(&pod).unwrap_or_else(|| "no version".to_owned());
            log.call(&cx, Paint::Green, format!("runs {version}"));
        }
        (None, Some(last)) => {
            let version = label(&last).unwrap_or_else(|| "no version".to_owned());
            log.call(&cx, Paint::Yellow, format!("is deleted; it ran {version}"));
        }
        (None, None) => log.call(&cx, Paint::Dim, "no such pod"),
    }
    Ok(Outcome::done())
}

/// Reads the same pods as dynamic objects: the same watch, the same cache, the same bytes.
pub(crate) async fn audit(log: Journal, cx: Context<DynamicObject>) -> HandlerResult {
    match cx.object()? {
        Some(object) => {
            let parts: Vec<&str> = object
                .data
                .as_object()
                .into_iter()
                .flatten()
                .map(|(part, _)| part.as_str())
                .collect();
            log.call(&cx, Paint::Green, format!("dynamic: {}", parts.join(", ")));
        }
        None => log.call(&cx, Paint::Dim, "dynamic: nothing"),
    }
    Ok(Outcome::done())
}

/// Fails twice for every new pod. Only this handler is retried; the others are not called again.
pub(crate) async fn register(log: Journal, cx: Context<Pod>) -> HandlerResult {
    let Some(pod) = cx.object()? else {
        log.call(&cx, Paint::Dim, "nothing to register");
        return Ok(Outcome::done());
    };
    let is_new = pod
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get("version"))
        .is_none_or(|version| version == "v1");
    if is_new && cx.attempt() <= 2 {
        log.call(
            &cx,
            Paint::Red,
            format!("✗ attempt {}: the registry is busy", cx.attempt()),
        );
        return Err("the registry is busy".into());
    }
    log.call(
        &cx,
        Paint::Green,
        format!("✓ registered at attempt {}", cx.attempt()),
    );
    Ok(Outcome::done())
}

/// Reads widgets, a custom kind without a Rust type.
pub(crate) async fn resize(log: Journal, cx: Context<DynamicObject>) -> HandlerResult {
    match cx.object()? {
        Some(widget) => {
            let size = &widget.data["spec"]["size"];
            log.call(&cx, Paint::Green, format!("has size {size}"));
        }
        None => log.call(&cx, Paint::Yellow, "is deleted"),
    }
    Ok(Outcome::done())
}
