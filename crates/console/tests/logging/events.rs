//! The events by which an order of watch, queue and handlers can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_console::logging::{Format, Logging};
use lariat_controller::{Context, Outcome};
use lariat_core::ObjectKey;
use serde_json::{Value, json};
use tokio::time;

use crate::support::{Log, Program, settle};

/// An event: its target and its message.
type Named = (String, String);

/// Fields of the line rather than of its event, and of the spans around it.
const AROUND: [&str; 5] = ["timestamp", "level", "target", "spans", "message"];

/// Returns the events that the guide lists, with their fields.
fn listed() -> BTreeMap<Named, Vec<String>> {
    let guide = include_str!("../../../../docs/tracing.md");
    let rows = guide.lines().filter_map(|line| {
        let [_, target, message, fields, ..] = &line.split('|').collect::<Vec<_>>()[..] else {
            return None;
        };
        let word = |cell: &str| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.to_owned());
        let fields = fields.split('`').skip(1).step_by(2);
        Some((
            (word(target)?, word(message)?),
            fields.map(str::to_owned).collect(),
        ))
    });
    rows.filter(|((target, _), _)| target.starts_with("lariat::"))
        .collect()
}

/// Returns the lines of a program whose handler writes and fails once, and whose watch is cut.
async fn lines() -> Vec<Value> {
    let log = Log::begin(
        "off,lariat::=trace",
        Logging::builder().format(Format::Json),
    );
    let program = Program::new().await;
    let marks = |cx: Context<ConfigMap>| async move {
        let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
        let patch = Patch::Merge(json!({"data": {"seen": "yes"}}));
        let params = PatchParams::default();
        api.patch(cx.key().name(), &params, &patch).await?;
        if cx.attempt() == 1 {
            return Err("not yet".into());
        }
        Ok(Outcome::done())
    };
    let maps = &program.config_maps;
    maps.register_handler("marks", marks).expect("registered");
    program.factory.start(1).await.expect("started");
    settle().await;
    program.create("a").await;
    settle().await;
    maps.enqueue(&ObjectKey::namespaced("default", "a"));
    time::sleep(Duration::from_secs(90)).await;
    program.cluster.cut_watches();
    time::sleep(Duration::from_secs(90)).await;
    program.factory.stop().await.expect("stopped");
    let text = log.text();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

fn named(line: &Value) -> Named {
    let text = |field: &str| line[field].as_str().expect("a text").to_owned();
    (text("target"), text("message"))
}

#[tokio::test(start_paused = true)]
async fn every_stable_event_has_the_fields_that_the_guide_lists() {
    let (listed, lines) = (listed(), lines().await);
    let mut seen: BTreeMap<Named, BTreeSet<&str>> = BTreeMap::new();
    for line in &lines {
        let fields = line.as_object().expect("an object").keys();
        let fields = fields.map(String::as_str);
        let own = fields.filter(|field| !AROUND.contains(field));
        seen.entry(named(line)).or_default().extend(own);
    }
    for (event, fields) in &listed {
        let seen = seen.get(event);
        let missing = fields
            .iter()
            .find(|field| !seen.is_some_and(|seen| seen.contains(field.as_str())));
        assert_eq!(missing, None, "{event:?} has {seen:?}");
    }
    let unlisted = seen.keys().find(|event| !listed.contains_key(*event));
    assert_eq!(unlisted, None);
}

#[tokio::test(start_paused = true)]
async fn events_show_the_order_of_watch_queue_and_handlers() {
    let lines = lines().await;
    let of_key = lines.iter().filter(|line| line["key"] == "default/a");
    let words = of_key.map(|line| {
        let detail = ["event", "change", "status", "outcome"].map(|field| &line[field]);
        let detail = detail.into_iter().find(|value| !value.is_null());
        let detail = detail.map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
        let message = line["message"].as_str().expect("a text");
        format!("{message} {}", detail.unwrap_or_default())
            .trim_end()
            .to_owned()
    });
    let words: Vec<String> = words.collect();
    let first = [
        "received ADDED",
        "changed added",
        "queued",
        "dequeued",
        "calling",
    ];
    assert_eq!(words[..5], first, "{words:#?}");
    let ends: Vec<_> = words
        .iter()
        .filter(|word| word.starts_with("called"))
        .collect();
    assert_eq!(ends[..2], ["called failed", "called done"], "{words:#?}");
}
