//! Lists and watches.

use super::script::Script;
use crate::step::{Body, How};

/// Labels that select some of a sequence's objects, or are wrong.
const LABELS: [&str; 18] = [
    "app=a",
    "app!=a",
    "app in (a,b)",
    "app notin (b)",
    "app",
    "!app",
    "app==b",
    "x",
    "app in ()",
    "app>1",
    "app<x",
    "=a",
    "app=a=b",
    "app in (a",
    "bad key=a",
    "app=bad value",
    "app,!x",
    "app=",
];

/// Field selectors that every kind has, or none.
const FIELDS: [&str; 10] = [
    "metadata.name=a",
    "metadata.name!=a",
    "metadata.namespace=${ns}",
    "metadata.name=a,metadata.namespace!=x",
    "metadata.uid=x",
    "spec.unknown=x",
    "metadata.name",
    "metadata.name>a",
    "metadata.name=",
    "=x",
];

/// Field selectors of some kinds.
const KIND_FIELDS: [(&str, &[&str]); 12] = [
    (
        "Pod",
        &[
            "spec.nodeName=some-node",
            "spec.nodeName=",
            "status.phase=Pending",
            "status.phase!=Running",
            "spec.restartPolicy=Always",
            "spec.hostNetwork=true",
            "spec.schedulerName=other",
            "spec.serviceAccountName=builder",
            "status.podIP=",
        ],
    ),
    ("Node", &["spec.unschedulable=true"]),
    (
        "Event",
        &[
            "reason=Started",
            "type=Normal",
            "involvedObject.kind=Pod",
            "regarding.name=p",
        ],
    ),
    ("Namespace", &["status.phase=Active"]),
    ("Secret", &["type=Opaque"]),
    ("Service", &["spec.type=ClusterIP", "spec.clusterIP=None"]),
    ("Job", &["status.successful=0"]),
    ("ReplicationController", &["status.replicas=0"]),
    (
        "CertificateSigningRequest",
        &["spec.signerName=example.com/signer"],
    ),
    (
        "ResourceSlice",
        &["spec.driver=d.example.com", "spec.nodeName=n"],
    ),
    ("Rich", &["spec.mode=slow", "spec.size=3", "spec.size!=3"]),
    ("ConfigMap", &["data.a=1"]),
];

/// Lists the kind's objects with random options.
pub(super) fn list(script: &mut Script<'_>) {
    let everywhere = script.chance(20);
    let path = if everywhere {
        script.kind.everywhere()
    } else {
        script.kind.collection()
    };
    script.step("list", "GET", &path, Body::None);
    selectors(script);
    match script.random.u32(..14) {
        0 => script.query("resourceVersion", "0"),
        1 => versioned(script, "Exact"),
        2 => versioned(script, "NotOlderThan"),
        3 => script.query("resourceVersionMatch", "Exact"),
        4 => script.query("resourceVersion", "x"),
        5 => versioned(script, "Nonsense"),
        6 => script.query("sendInitialEvents", "true"),
        7 => script.query("limit", "x"),
        8 => script.query("continue", "nonsense"),
        9 => script.query("timeoutSeconds", "x"),
        _ => {}
    }
    if script.chance(35) {
        shape(script);
    }
}

fn versioned(script: &mut Script<'_>, how: &str) {
    let last = script.last[0].unwrap_or(0);
    script.query("resourceVersion", &format!("${{rv:{last}}}"));
    script.query("resourceVersionMatch", how);
}

/// Adds the selector that keeps other sequences' objects out, and perhaps others.
fn selectors(script: &mut Script<'_>) {
    let mut labels = "run=${id}".to_owned();
    if script.chance(40) {
        let more = script.pick(&LABELS);
        labels = format!("{labels},{more}");
    }
    script.query("labelSelector", &labels);
    if script.chance(35) {
        let known = KIND_FIELDS
            .iter()
            .find(|(kind, _)| *kind == script.kind.kind);
        let selector = match known {
            Some((_, fields)) if script.chance(60) => script.pick(fields),
            _ => script.pick(&FIELDS),
        };
        script.query("fieldSelector", selector);
    }
}

/// Asks for another form of the answer.
pub(super) fn shape(script: &mut Script<'_>) {
    let accept = script.pick(&[
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
        "application/yaml",
        "application/json;as=Nonsense;v=v1;g=meta.k8s.io",
        "text/html",
        "*/*",
        "application/json;stream=watch",
    ]);
    script.header("accept", accept);
    if accept.contains("Table") && script.chance(50) {
        let include = script.pick(&["None", "Metadata", "Object", "Nonsense"]);
        script.query("includeObject", include);
    }
}

/// Lists in pages.
pub(super) fn pages(script: &mut Script<'_>) {
    let path = script.kind.collection();
    let limit = script.pick(&["1", "2"]);
    let has_selector = script.chance(30) || !script.kind.namespaced;
    let mut previous: Option<usize> = None;
    for _ in 0..3 {
        let id = script.step("list", "GET", &path, Body::None);
        script.query("limit", limit);
        if has_selector {
            script.query("labelSelector", "run=${id}");
        }
        if let Some(previous) = previous {
            script.query("continue", &format!("${{continue:{previous}}}"));
        }
        previous = Some(id);
    }
}

/// Watches what there is, for a second.
pub(super) fn watch(script: &mut Script<'_>) {
    let path = script.kind.collection();
    script.step("watch", "GET", &path, Body::None);
    script.query("watch", "true");
    script.query("timeoutSeconds", "1");
    watch_options(script);
    script.how(How::Watch);
}

/// Watches what comes until the sequence ends.
pub(super) fn live_watch(script: &mut Script<'_>) {
    let path = script.kind.collection();
    script.step("watch", "GET", &path, Body::None);
    script.query("watch", "1");
    script.query("timeoutSeconds", "60");
    watch_options(script);
    script.how(How::Live);
}

fn watch_options(script: &mut Script<'_>) {
    selectors(script);
    match script.random.u32(..12) {
        0 => script.query("resourceVersion", "0"),
        1 | 2 => {
            let last = script.last[0].unwrap_or(0);
            script.query("resourceVersion", &format!("${{rv:{last}}}"));
        }
        3..6 => {
            script.query("sendInitialEvents", "true");
            script.query("resourceVersionMatch", "NotOlderThan");
        }
        6 => script.query("sendInitialEvents", "true"),
        7 => {
            script.query("sendInitialEvents", "false");
            script.query("resourceVersionMatch", "NotOlderThan");
        }
        8 => script.query("resourceVersion", "x"),
        _ => {}
    }
    if script.chance(60) {
        script.query("allowWatchBookmarks", "true");
    }
    if script.chance(25) {
        shape(script);
    }
}
