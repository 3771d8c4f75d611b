//! What the page shows.

use std::time::Duration;

use lariat_cluster::faults::CurrentRule;
use lariat_cluster::{Inspector, OpenWatch, RecordedRequest, ResourceCount};
use serde::Serialize;

use super::query::{shortened, shown};

/// How many of the last requests are shown.
const REQUESTS: usize = 200;
/// How many open watches are shown.
const WATCHES: usize = 500;

/// The cluster at a moment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterState {
    /// Where the cluster is served.
    url: String,
    /// The time since the console began.
    uptime_seconds: u64,
    revision: u64,
    objects: usize,
    /// The size of all objects in JSON.
    bytes: usize,
    /// The memory of the process, where the system tells it.
    memory_bytes: Option<u64>,
    /// How many connections there were.
    connections: u64,
    history: History,
    journal: JournalState,
    /// By group and plural name.
    resources: Vec<Resource>,
    watches: Watches,
    /// The last ones, newest first.
    requests: Vec<ShownRequest>,
    /// In the order in which they apply.
    faults: Vec<Fault>,
}

#[derive(Debug, Serialize)]
struct History {
    /// How many changes are kept of all resources.
    changes: usize,
    /// How many are kept of each at most.
    capacity: usize,
}

#[derive(Debug, Serialize)]
struct JournalState {
    /// How many requests there were.
    total: u64,
    /// How many are kept.
    capacity: usize,
}

#[derive(Debug, Serialize)]
struct Resource {
    group: String,
    kind: String,
    resource: String,
    objects: usize,
    bytes: usize,
    changes: usize,
    oldest: u64,
    namespaces: Vec<Namespace>,
}

#[derive(Debug, Serialize)]
struct Namespace {
    /// Empty for objects without one.
    name: String,
    objects: usize,
}

#[derive(Debug, Serialize)]
struct Watches {
    total: usize,
    /// The oldest ones, 500 at most.
    items: Vec<Watch>,
}

#[derive(Debug, Serialize)]
struct Watch {
    id: u64,
    group: String,
    kind: String,
    resource: String,
    namespace: Option<String>,
    client: String,
    user: String,
    /// How long it has been open.
    seconds: f64,
    sent: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownRequest {
    /// Its number among all there were.
    id: u64,
    seconds_ago: f64,
    verb: String,
    /// The path, with the values of the query that are no secrets.
    path: String,
    user: String,
    client: String,
    code: Option<u16>,
    /// The time until the answer began.
    seconds: Option<f64>,
    /// What faults did to it.
    faults: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Fault {
    id: String,
    text: String,
    hits: u64,
    over: bool,
    /// A client may see this although its API server is correct.
    legal: bool,
}

impl ClusterState {
    pub(super) fn of(cluster: &Inspector, url: &str, uptime: Duration) -> Self {
        let resources: Vec<Resource> = cluster
            .resources()
            .into_iter()
            .map(Resource::from)
            .collect();
        let mut watches = cluster.watches();
        let total = watches.len();
        // After the total was taken; the oldest come first.
        watches.truncate(WATCHES);
        let journal = cluster.journal();
        Self {
            url: url.to_owned(),
            uptime_seconds: uptime.as_secs(),
            revision: cluster.revision(),
            objects: resources.iter().map(|each| each.objects).sum(),
            bytes: resources.iter().map(|each| each.bytes).sum(),
            memory_bytes: resident(),
            connections: cluster.connections(),
            history: History {
                changes: resources.iter().map(|each| each.changes).sum(),
                capacity: cluster.history(),
            },
            requests: requests(cluster),
            journal: JournalState {
                total: journal.total(),
                capacity: journal.capacity(),
            },
            resources,
            watches: Watches {
                total,
                items: watches.into_iter().map(Watch::from).collect(),
            },
            faults: cluster.faults().rules().iter().map(Fault::from).collect(),
        }
    }
}

impl From<ResourceCount> for Resource {
    fn from(count: ResourceCount) -> Self {
        let namespaces = count.namespaces.into_iter();
        Self {
            group: count.group,
            kind: count.kind,
            resource: count.resource,
            objects: count.objects,
            bytes: count.bytes,
            changes: count.changes,
            oldest: count.oldest,
            namespaces: namespaces
                .map(|(name, objects)| Namespace { name, objects })
                .collect(),
        }
    }
}

impl From<OpenWatch> for Watch {
    fn from(watch: OpenWatch) -> Self {
        Self {
            id: watch.id,
            group: watch.group,
            kind: watch.kind,
            resource: watch.resource,
            namespace: watch.namespace,
            client: shortened(watch.client),
            user: shortened(watch.user),
            seconds: watch.age.as_secs_f64(),
            sent: watch.sent,
        }
    }
}

impl From<&CurrentRule> for Fault {
    fn from(rule: &CurrentRule) -> Self {
        Self {
            id: rule.id().to_string(),
            text: shortened(rule.to_string()),
            hits: rule.hits(),
            over: rule.is_over(),
            legal: rule.rule().action().is_legal(),
        }
    }
}

fn requests(cluster: &Inspector) -> Vec<ShownRequest> {
    let journal = cluster.journal();
    let last = journal.last(REQUESTS);
    // The clock that stamped the requests, which is not that of the system.
    let now = journal.now();
    let newest_first = last.into_iter().rev();
    newest_first
        .map(|request| ShownRequest::new(now, request))
        .collect()
}

impl ShownRequest {
    fn new(now: Duration, request: RecordedRequest) -> Self {
        let faults = request.faults.iter();
        Self {
            id: request.number,
            seconds_ago: now.saturating_sub(request.at).as_secs_f64(),
            path: shown(&request.path, &request.query),
            verb: shortened(request.verb),
            user: shortened(request.user),
            client: shortened(request.user_agent),
            code: request.code.map(|code| code.as_u16()),
            seconds: request.took.map(|took| took.as_secs_f64()),
            faults: faults.map(|action| shortened(action.to_string())).collect(),
        }
    }
}

/// Returns the resident memory of the process in bytes.
///
/// Only Linux tells it without a library.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    // The kernel writes `kB` and means KiB.
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
