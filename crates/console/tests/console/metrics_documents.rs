//! The list of metrics, the dashboard and the alert rules, compared with a scrape of a program.

use std::collections::{BTreeMap, BTreeSet};

use lariat_core::yaml;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::metrics_program::{Program, Scrape};
use crate::promql::Uses;

const LIST: &str = include_str!("../../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../../docs/grafana-dashboard.json");
const ALERTS: &str = include_str!("../../../../docs/alerts.yaml");

#[derive(Debug, PartialEq, Eq)]
struct Described {
    of_type: String,
    labels: BTreeSet<String>,
}

/// Reads rows such as ``| `name` | gauge | `a`, `b` | meaning |``.
fn described() -> BTreeMap<String, Described> {
    let mut families = BTreeMap::new();
    for line in LIST.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, of_type, labels, meaning, _] = cells[..] else {
            panic!("a row of five columns: {line}");
        };
        assert!(!meaning.is_empty(), "{line}");
        let labels = labels
            .split(", ")
            .map(|label| label.trim_matches('`').to_owned());
        let family = Described {
            of_type: of_type.to_owned(),
            labels: labels.collect(),
        };
        let name = name.trim_matches('`').to_owned();
        assert!(families.insert(name, family).is_none(), "twice: {line}");
    }
    families
}

fn scraped(scrape: &Scrape) -> BTreeMap<String, Described> {
    let families = scrape.types.iter().map(|(name, of_type)| {
        let labels = scrape.labels_of(name).into_iter().map(str::to_owned);
        let family = Described {
            of_type: of_type.clone(),
            labels: labels.collect(),
        };
        (name.clone(), family)
    });
    families.collect()
}

/// An expression of the dashboard, with the template of its legend.
pub(crate) struct Query {
    pub(crate) expression: String,
    legend: String,
}

/// Returns the queries of the dashboard, with values in place of its variables.
pub(crate) fn dashboard_queries() -> Vec<Query> {
    let dashboard: Json = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let queries = targets.flatten().map(|target| {
        let text = |name: &str| target[name].as_str().expect("a text");
        let expression = text("expr").replace("$__rate_interval", "5m");
        let expression = expression.replace("$job", ".*").replace("$ctx", ".*");
        assert!(
            !expression.contains('$'),
            "an unknown variable: {expression}"
        );
        Query {
            expression,
            legend: text("legendFormat").to_owned(),
        }
    });
    queries.collect()
}

#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    alert: String,
    expr: String,
    annotations: BTreeMap<String, String>,
}

/// Returns the names between two marks of a template.
fn between<'a>(text: &'a str, before: &str, after: &[char]) -> Vec<&'a str> {
    let names = text.split(before).skip(1);
    names
        .map(|rest| rest.split(after).next().unwrap_or_default().trim())
        .collect()
}

/// Checks that the labels of a template are left by an expression.
fn check_template(template: &[&str], uses: &Uses, scrape: &Scrape, what: &str) {
    for label in template {
        let is_left = if uses.grouped.is_empty() {
            let mut metrics = uses.metrics.iter();
            ["job", "instance"].contains(label)
                || metrics.any(|metric| scrape.labels_of(&metric.name).contains(label))
        } else {
            uses.grouped.contains(*label)
        };
        assert!(is_left, "{what} has no label {label}");
    }
}

#[tokio::test]
async fn every_series_is_described_and_every_described_one_exists() {
    let program = Program::start().await;
    let scrape = program.scrape().await;
    assert_eq!(scraped(&scrape), described());
    let host = program
        .cluster
        .url()
        .expect("it listens")
        .replace("http://", "");
    let requests = scrape.sum("rest_client_requests_total", &[("host", &host)]);
    assert_eq!(requests, scrape.sum("rest_client_requests_total", &[]));
    program.stop().await;
}

#[tokio::test]
async fn the_dashboard_and_the_rules_use_what_exists() {
    let program = Program::start().await;
    let scrape = program.scrape().await;
    let queries = dashboard_queries();
    assert!(queries.len() > 30, "{}", queries.len());
    for query in queries {
        let uses = Uses::of(&query.expression);
        assert!(!uses.metrics.is_empty(), "{}", query.expression);
        assert_eq!(uses.missing(&scrape), [""; 0], "{}", query.expression);
        let labels = between(&query.legend, "{{", &['}']);
        check_template(&labels, &uses, &scrape, &query.expression);
    }
    let rules = yaml::read(ALERTS).expect("rules");
    let rules: Rules = serde_json::from_value(rules).expect("rules");
    for rule in rules.groups.iter().flat_map(|group| &group.rules) {
        let uses = Uses::of(&rule.expr);
        assert_eq!(uses.missing(&scrape), [""; 0], "{}", rule.alert);
        for text in rule.annotations.values() {
            let labels = between(text, "$labels.", &[' ', '}']);
            check_template(&labels, &uses, &scrape, &rule.alert);
        }
    }
    program.stop().await;
}

#[test]
fn the_dashboard_has_its_rows_and_asks_for_a_data_source() {
    let dashboard: Json = serde_json::from_str(DASHBOARD).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let rows = panels.iter().filter(|panel| panel["type"] == "row");
    let rows: Vec<&str> = rows.filter_map(|row| row["title"].as_str()).collect();
    let expected = [
        "Controllers",
        "Handlers",
        "Queue",
        "Caches",
        "API requests",
        "Leases",
    ];
    assert_eq!(rows, expected);
    let ids: BTreeSet<u64> = panels
        .iter()
        .filter_map(|panel| panel["id"].as_u64())
        .collect();
    assert_eq!(ids.len(), panels.len(), "ids are unique");
    let shown = panels.iter().filter(|panel| panel["type"] != "row");
    for panel in shown {
        assert_eq!(
            panel["datasource"]["uid"], "${datasource}",
            "{}",
            panel["title"]
        );
    }
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables");
    let names: Vec<&str> = variables
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names, ["datasource", "job", "ctx"]);
}
