//! The columns of the output.

use anyhow::{Context, Result, bail};
use http::Request;
use kube::Client;
use lariat_core::ResourceKind;
use lariat_sql::{Path, Subject};
use serde_json::Value as Json;

use super::options::{Options, Output};

/// One column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) path: Path,
    pub(super) is_time: bool,
    /// Whether the user names it.
    pub(super) is_given: bool,
}

/// Columns of built-in kinds: heading, path, and whether only `-o wide` shows it.
type Usual = (&'static str, &'static str, bool);

const PODS: [Usual; 3] = [
    ("PHASE", "status.phase", false),
    ("NODE", "spec.nodeName", false),
    ("IP", "status.podIP", true),
];
const NODES: [Usual; 4] = [
    (
        "READY",
        "status.conditions[?(@.type==\"Ready\")].status",
        false,
    ),
    ("VERSION", "status.nodeInfo.kubeletVersion", false),
    ("ADDRESS", "status.addresses[0].address", true),
    ("OS", "status.nodeInfo.osImage", true),
];
const SERVICES: [Usual; 3] = [
    ("TYPE", "spec.type", false),
    ("CLUSTER-IP", "spec.clusterIP", false),
    ("PORTS", "spec.ports[*].port", false),
];
const REPLICAS: [Usual; 3] = [
    ("REPLICAS", "spec.replicas", false),
    ("READY", "status.readyReplicas", false),
    ("IMAGES", "spec.template.spec.containers[*].image", true),
];
const PHASES: [Usual; 1] = [("PHASE", "status.phase", false)];
const EVENTS: [Usual; 4] = [
    ("TYPE", "type", false),
    ("REASON", "reason", false),
    ("OBJECT", "involvedObject.name", false),
    ("MESSAGE", "message", false),
];

/// Returns the columns to show.
///
/// They are the given ones, or the usual ones of the kind and the fields of the query.
pub(super) async fn columns(
    client: &Client,
    kind: &ResourceKind,
    options: &Options,
) -> Result<Vec<Column>> {
    let mut given = options.columns().peekable();
    if given.peek().is_some() {
        return given.map(|name| Column::given(name)).collect();
    }
    if matches!(options.output, Output::Name | Output::Json) {
        return Ok(Vec::new());
    }
    let is_wide = options.output == Output::Wide;
    let mut columns = match usual(kind) {
        [] => printed(&definition(client, kind).await, kind, is_wide),
        usual => Column::usual(usual, is_wide),
    };
    for subject in options.query.subjects() {
        let named = Column::given(&subject.to_string())?;
        let is_there = |column: &Column| column.path == named.path;
        // Names and ages are always shown.
        let is_base = named.path.to_string().starts_with("metadata.") && !is_label(subject);
        if !is_base && !columns.iter().any(is_there) {
            columns.push(named);
        }
    }
    if is_wide {
        columns.push(Column::new("LABELS", "metadata.labels".parse()?));
    }
    let age = Column::new("AGE", "metadata.creationTimestamp".parse()?);
    columns.push(Column {
        is_time: true,
        ..age
    });
    Ok(columns)
}

fn is_label(subject: &Subject) -> bool {
    matches!(subject, Subject::Label(_))
}

impl Column {
    fn new(heading: &str, path: Path) -> Self {
        Self {
            heading: heading.to_owned(),
            path,
            is_time: false,
            is_given: false,
        }
    }

    /// Makes a column of a field or a label that the user names.
    fn given(name: &str) -> Result<Self> {
        let parsed: Result<Path, _> = match Subject::parse(name) {
            Subject::Label(key) => format!("metadata.labels['{key}']").parse(),
            Subject::Field(name) => name.parse(),
            Subject::Associated { .. } => {
                bail!("the column {name:?} is of another kind: name a field or a label of this one")
            }
        };
        let path = parsed.with_context(|| format!("the column {name:?}"))?;
        let steps = path.steps();
        let members = steps.as_array().into_iter().flatten();
        let last = members.filter_map(Json::as_str).next_back();
        let heading = last.unwrap_or(name).to_uppercase();
        Ok(Self {
            is_given: true,
            ..Self::new(&heading, path)
        })
    }

    fn usual(usual: &[Usual], is_wide: bool) -> Vec<Self> {
        let shown = usual
            .iter()
            .filter(|(.., is_wide_only)| is_wide || !is_wide_only);
        let columns = shown.filter_map(|(heading, path, _)| {
            let path = path.parse().ok()?;
            Some(Self::new(heading, path))
        });
        columns.collect()
    }
}

fn usual(kind: &ResourceKind) -> &'static [Usual] {
    match (kind.gvk().group(), kind.plural()) {
        ("", "pods") => &PODS,
        ("", "nodes") => &NODES,
        ("", "services") => &SERVICES,
        ("", "events") => &EVENTS,
        ("", "namespaces" | "persistentvolumes" | "persistentvolumeclaims") => &PHASES,
        ("apps", "deployments" | "statefulsets" | "replicasets") => &REPLICAS,
        _ => &[],
    }
}

/// Returns the CRD of a custom kind, if there is one that may be read.
async fn definition(client: &Client, kind: &ResourceKind) -> Json {
    let group = kind.gvk().group();
    // The groups of CRDs contain a dot, so one without is built in, such as `apps`.
    if !group.contains('.') {
        return Json::Null;
    }
    let plural = kind.plural();
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
    let Ok(request) = Request::get(path).body(Vec::new()) else {
        return Json::Null;
    };
    // Without the right to read CRDs, only names are shown.
    client.request(request).await.unwrap_or_default()
}

/// Returns the columns that a CRD prints.
fn printed(definition: &Json, kind: &ResourceKind, is_wide: bool) -> Vec<Column> {
    let mut versions = definition["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten();
    let version = versions.find(|version| version["name"] == kind.gvk().version());
    let columns = version
        .and_then(|it| it["additionalPrinterColumns"].as_array())
        .into_iter()
        .flatten();
    let shown = columns.filter(|column| is_wide || column["priority"].as_i64().unwrap_or(0) == 0);
    let columns = shown.filter_map(|column| {
        // A JSONPath may use what a path of a field cannot, such as ranges. Its column is left out.
        let path: Path = column["jsonPath"].as_str()?.parse().ok()?;
        let heading = column["name"].as_str()?.to_uppercase();
        // It is shown anyhow.
        let is_age = path.to_string() == "metadata.creationTimestamp";
        (!is_age).then(|| Column {
            is_time: column["type"] == "date",
            ..Column::new(&heading, path)
        })
    });
    columns.collect()
}

#[cfg(test)]
mod tests {
    use lariat_core::{Gvk, Scope};
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_of_a_definition_are_those_of_its_version() {
        let kind = ResourceKind::new(
            Gvk::new("a.dev", "v1", "Thing"),
            "things",
            Scope::Namespaced,
        );
        let definition = json!({"spec": {"versions": [
            {"name": "v2"},
            {"name": "v1", "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                {"name": "Since", "type": "date", "jsonPath": ".status.since", "priority": 1},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                {"name": "Odd", "type": "string", "jsonPath": ".spec..odd"},
            ]},
        ]}});
        let headings = |is_wide| {
            let columns = printed(&definition, &kind, is_wide).into_iter();
            columns
                .map(|it| (it.heading, it.is_time))
                .collect::<Vec<_>>()
        };
        let (size, since) = (("SIZE".to_owned(), false), ("SINCE".to_owned(), true));
        assert_eq!(headings(true), [size.clone(), since]);
        assert_eq!(headings(false), [size]);
        assert_eq!(printed(&Json::Null, &kind, true), []);
    }

    #[test]
    fn every_usual_column_has_a_path() {
        for usual in [&PODS[..], &NODES, &SERVICES, &REPLICAS, &PHASES, &EVENTS] {
            assert_eq!(Column::usual(usual, true).len(), usual.len());
        }
        let label = Column::given("metadata.labels.app.kubernetes.io/name").unwrap();
        assert_eq!(label.heading, "APP.KUBERNETES.IO/NAME");
    }
}
