//! A Prometheus that scrapes a program; `scripts/prometheus.sh` downloads it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use lariat_testing::http::Client;
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::bench::until;
use crate::metrics_documents::dashboard_queries;
use crate::metrics_program::Program;

/// Returns a program of Prometheus: in the folder that `PROMETHEUS` names, or in the target folder.
fn installed(name: &str) -> PathBuf {
    let named = std::env::var_os("PROMETHEUS").map(PathBuf::from);
    let own = std::env::current_exe().expect("a test is a program");
    let targets = own.ancestors().map(|folder| folder.join("prometheus"));
    let folders = named.into_iter().chain(targets);
    let mut programs = folders.map(|folder| folder.join(name));
    let found = programs.find(|program| program.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing: run scripts/prometheus.sh"))
}

fn rules() -> PathBuf {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/alerts.yaml");
    rules.canonicalize().expect("the rules exist")
}

/// A running Prometheus with a folder of its own.
struct Prometheus {
    _child: Child,
    _reader: JoinSet<()>,
    folder: PathBuf,
    client: Client,
}

impl Prometheus {
    /// Starts a Prometheus that scrapes a target every second.
    async fn start(target: &str) -> Self {
        let unique = format!("lariat-prometheus-{}", std::process::id());
        let folder = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&folder).expect("a folder");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: [{:?}]\n\
             scrape_configs:\n\
             - job_name: shop\n  static_configs: [{{targets: [{target:?}]}}]\n",
            rules()
        );
        let path = folder.join("prometheus.yml");
        std::fs::write(&path, config).expect("written");
        let mut child = Command::new(installed("prometheus"))
            .arg(format!("--config.file={}", path.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("Prometheus starts");
        let log = child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(log).lines();
        let mut log = String::new();
        let address = loop {
            let Some(line) = lines.next_line().await.expect("its log") else {
                panic!("it ended:\n{log}");
            };
            if let Some((_, address)) = line.split_once("msg=\"Listening on\" address=") {
                break address.trim().parse().expect("an address");
            }
            log += &format!("{line}\n");
        };
        // It would wait for a reader of its log.
        let mut reader = JoinSet::new();
        reader.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            _child: child,
            _reader: reader,
            folder,
            client: Client::new(address),
        }
    }

    /// Returns the data of an answer of its API.
    async fn ask(&self, path: &str) -> Option<Json> {
        let answer = self.client.get(path).await;
        // It answers 503 until it has started.
        let json: Json = serde_json::from_str(&answer.text).ok()?;
        assert_eq!(json["status"], "success", "{path}: {}", answer.text);
        Some(json["data"].clone())
    }

    /// Returns the series that an expression finds.
    async fn query(&self, expression: &str) -> Option<Vec<Json>> {
        let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        let data = self.ask(&format!("/api/v1/query?query={query}")).await?;
        data["result"].as_array().cloned()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn prometheus_scrapes_a_program_and_its_alerts_fire() {
    let program = Program::start().await;
    let prometheus = Prometheus::start(&program.server.address().to_string()).await;
    let depths = until(async || {
        let depths = prometheus.query("workqueue_depth").await?;
        (!depths.is_empty()).then_some(depths)
    })
    .await;
    let labels: Vec<[&str; 4]> = depths
        .iter()
        .map(|depth| {
            // An empty label is no label to Prometheus.
            let label = |name: &str| depth["metric"][name].as_str().unwrap_or_default();
            [
                label("job"),
                label("ctx"),
                label("controller"),
                label("priority"),
            ]
        })
        .collect();
    assert!(
        labels.contains(&["shop", "ring", "v1 Secret", "normal"]),
        "{labels:?}"
    );
    for query in dashboard_queries() {
        let found = prometheus.query(&query.expression).await;
        assert!(found.is_some(), "{}", query.expression);
    }
    // The only rule that fires at once.
    until(async || {
        let firing = r#"ALERTS{alertname="LariatGuardTripped", alertstate="firing"}"#;
        let firing = prometheus.query(firing).await?;
        let reconciler = firing.first()?["metric"]["reconciler"].clone();
        (reconciler == "reap").then_some(())
    })
    .await;
    let groups = prometheus
        .ask("/api/v1/rules")
        .await
        .expect("it has started");
    let groups = groups["groups"].as_array().expect("groups");
    let rules: Vec<&Json> = groups
        .iter()
        .filter_map(|it| it["rules"].as_array())
        .flatten()
        .collect();
    assert!(rules.len() >= 12);
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    program.stop().await;
}

#[tokio::test]
async fn promtool_accepts_the_rules_and_the_exposition() {
    let check = Command::new(installed("promtool"))
        .args(["check", "rules"])
        .arg(rules())
        .output()
        .await
        .expect("promtool runs");
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(check.status.success(), "{said}");

    let program = Program::start().await;
    let text = program.client.get("/metrics").await.text;
    let mut check = Command::new(installed("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    let mut input = check.stdin.take().expect("it is piped");
    input.write_all(text.as_bytes()).await.expect("read");
    drop(input);
    let check = check.wait_with_output().await.expect("promtool ends");
    let said = String::from_utf8_lossy(&check.stderr);
    // lasso's names are not those that promtool suggests, nor is one of client-go's.
    let own = said.lines().filter(|line| line.starts_with("lariat_"));
    assert_eq!(own.collect::<Vec<_>>(), [""; 0], "{said}");
    assert!(!said.contains("error while linting"), "{said}");
    program.stop().await;
}
