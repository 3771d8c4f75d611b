//! Rows of nodes, namespaces, Events and small configuration.

use serde_json::Value;

use super::column::{AGE, Column, NAME, Printer, flag, number, text, wide};
use super::row::{Cells, NONE, Row};

pub(super) const CONFIG_MAPS: Printer = Printer {
    columns: &[NAME, text("Data"), AGE],
    cells: |map| {
        let data = map.count("/data") + map.count("/binaryData");
        vec![map.name().into(), data.into(), map.age().into()]
    },
};

pub(super) const SECRETS: Printer = Printer {
    columns: &[NAME, text("Type"), text("Data"), AGE],
    cells: |secret| {
        vec![
            secret.name().into(),
            secret.text("/type").into(),
            secret.count("/data").into(),
            secret.age().into(),
        ]
    },
};

pub(super) const SERVICE_ACCOUNTS: Printer = Printer {
    columns: &[NAME, text("Secrets"), AGE],
    cells: |account| {
        vec![
            account.name().into(),
            account.count("/secrets").into(),
            account.age().into(),
        ]
    },
};

pub(super) const NAMESPACES: Printer = Printer {
    columns: &[NAME, text("Status"), AGE],
    cells: |namespace| {
        vec![
            namespace.name().into(),
            namespace.text("/status/phase").into(),
            namespace.age().into(),
        ]
    },
};

pub(super) const NODES: Printer = Printer {
    columns: &[
        NAME,
        text("Status"),
        text("Roles"),
        AGE,
        text("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ],
    cells: |node| {
        const UNKNOWN: &str = "<unknown>";
        let info = node.at("/status/nodeInfo");
        vec![
            node.name().into(),
            node_status(node).into(),
            roles(node).into(),
            node.age().into(),
            info.text("/kubeletVersion").into(),
            node_address(node, "InternalIP").into(),
            node_address(node, "ExternalIP").into(),
            info.text_or("/osImage", UNKNOWN).into(),
            info.text_or("/kernelVersion", UNKNOWN).into(),
            info.text_or("/containerRuntimeVersion", UNKNOWN).into(),
        ]
    },
};

fn node_status(node: Row<'_>) -> String {
    let status = match node.condition("/status/conditions", "Ready") {
        "" => "Unknown",
        "True" => "Ready",
        _ => "NotReady",
    };
    if node.flag("/spec/unschedulable") {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

fn roles(node: Row<'_>) -> String {
    let labels = node.get("/metadata/labels").as_object();
    let role = |(key, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role.to_owned()),
            None if key == "kubernetes.io/role" => Some(value.to_owned()),
            None => None,
        }
    };
    let mut roles: Vec<String> = labels.into_iter().flatten().filter_map(role).collect();
    roles.retain(|role| !role.is_empty());
    roles.sort();
    roles.dedup();
    if roles.is_empty() {
        NONE.to_owned()
    } else {
        roles.join(",")
    }
}

fn node_address<'a>(node: Row<'a>, kind: &str) -> &'a str {
    let mut addresses = node.rows("/status/addresses");
    let address = addresses.find(|address| address.text("/type") == kind);
    address.map_or(NONE, |address| address.text("/address"))
}

const EVENT_COLUMNS: &[Column] = &[
    text("Last Seen"),
    text("Type"),
    text("Reason"),
    text("Object"),
    wide("Subobject"),
    wide("Source"),
    text("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
];

pub(super) const CORE_EVENTS: Printer = Printer {
    columns: EVENT_COLUMNS,
    cells: |event| {
        let members = EventMembers {
            object: event.at("/involvedObject"),
            message: event.text("/message"),
            first: "/firstTimestamp",
            last: "/lastTimestamp",
            count: event.number("/count"),
            source: event.at("/source"),
            reporter: event.text("/reportingComponent"),
        };
        self::event(event, &members)
    },
};

/// The same Events in their newer group, which calls some members otherwise.
pub(super) const EVENTS: Printer = Printer {
    columns: EVENT_COLUMNS,
    cells: |event| {
        let members = EventMembers {
            object: event.at("/regarding"),
            message: event.text("/note"),
            first: "/deprecatedFirstTimestamp",
            last: "/deprecatedLastTimestamp",
            count: event.number("/deprecatedCount"),
            source: event.at("/deprecatedSource"),
            reporter: event.text("/reportingController"),
        };
        self::event(event, &members)
    },
};

/// Where the two versions of Events differ.
struct EventMembers<'a> {
    object: Row<'a>,
    message: &'a str,
    first: &'static str,
    last: &'static str,
    count: i64,
    source: Row<'a>,
    reporter: &'a str,
}

fn event(event: Row<'_>, members: &EventMembers<'_>) -> Cells {
    let first = match event.text(members.first) {
        "" => event.since("/eventTime"),
        _ => event.since(members.first),
    };
    let last = match event.text(members.last) {
        _ if event.has("/series") => event.since("/series/lastObservedTime"),
        "" => first.clone(),
        _ => event.since(members.last),
    };
    let count = match members.count {
        _ if event.has("/series") => event.number("/series/count"),
        // What happened once has no count in the newer group.
        count => count.max(1),
    };
    let object = &members.object;
    let kind = object.text("/kind").to_lowercase();
    let target = match object.text("/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.into(),
        event.text("/type").into(),
        event.text("/reason").into(),
        target.into(),
        object.text("/fieldPath").into(),
        source(event, members).into(),
        members.message.trim().into(),
        first.into(),
        count.into(),
        event.name().into(),
    ]
}

fn source(event: Row<'_>, members: &EventMembers<'_>) -> String {
    let (component, host) = (
        members.source.text("/component"),
        members.source.text("/host"),
    );
    let (component, host) = match component {
        "" => (members.reporter, event.text("/reportingInstance")),
        component => (component, host),
    };
    match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

pub(super) const LEASES: Printer = Printer {
    columns: &[NAME, text("Holder"), AGE],
    cells: |lease| {
        vec![
            lease.name().into(),
            lease.text("/spec/holderIdentity").into(),
            lease.age().into(),
        ]
    },
};

pub(super) const QUOTAS: Printer = Printer {
    columns: &[NAME, text("Request"), text("Limit"), AGE],
    cells: |quota| {
        let hard = quota.get("/status/hard").as_object();
        let (mut requests, mut limits) = (Vec::new(), Vec::new());
        for resource in hard.into_iter().flatten().map(|(resource, _)| resource) {
            let pointer = resource.replace('~', "~0").replace('/', "~1");
            let used = quota.scalar_or(&format!("/status/used/{pointer}"), "0");
            let hard = quota.scalar_or(&format!("/status/hard/{pointer}"), "0");
            let text = format!("{resource}: {used}/{hard}");
            if resource.starts_with("limits") {
                limits.push(text)
            } else {
                requests.push(text)
            }
        }
        vec![
            quota.name().into(),
            requests.join(", ").into(),
            limits.join(", ").into(),
            quota.age().into(),
        ]
    },
};

pub(super) const PRIORITY_CLASSES: Printer = Printer {
    columns: &[
        NAME,
        number("Value"),
        flag("Global-Default"),
        AGE,
        text("PreemptionPolicy"),
    ],
    cells: |class| {
        vec![
            class.name().into(),
            class.number("/value").into(),
            class.flag("/globalDefault").into(),
            class.age().into(),
            class.text("/preemptionPolicy").into(),
        ]
    },
};

pub(super) const RUNTIME_CLASSES: Printer = Printer {
    columns: &[NAME, text("Handler"), AGE],
    cells: |class| {
        vec![
            class.name().into(),
            class.text("/handler").into(),
            class.age().into(),
        ]
    },
};
