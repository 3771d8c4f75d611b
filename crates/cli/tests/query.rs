//! `lariat query` on the embedded cluster, as a user runs it.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A cluster that ends with the test, and its kubeconfig.
struct Cluster {
    child: Child,
    folder: PathBuf,
}

impl Cluster {
    fn start(seed: &Value) -> Self {
        let name = format!("query-{:016x}", fastrand::u64(..));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir(&folder).expect("the folder is new");
        let seeds = folder.join("seed.json");
        fs::write(&seeds, seed.to_string()).expect("the file can be written");
        let child = lariat(&["cluster", "--tls", "--listen", "127.0.0.1:0", "--load"])
            .args(["pods=300,namespaces=3,nodes=5,seed=1", "--seed"])
            .arg(&seeds)
            .arg("--kubeconfig")
            .arg(folder.join("kubeconfig"))
            .spawn();
        let mut child = child.expect("it runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        let read = BufReader::new(stdout).read_line(&mut line);
        assert!(read.is_ok() && line.starts_with("ready "), "{line:?}");
        Self { child, folder }
    }

    fn query(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = lariat(&["query"]);
        command.args(arguments);
        let output = command
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .output();
        let output = output.expect("it runs");
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        match output.status.code() {
            Some(0) => Ok(text(output.stdout)),
            _ => Err(text(output.stderr)),
        }
    }

    fn answer(&self, arguments: &[&str]) -> String {
        self.query(arguments)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let text = self.answer(&[arguments, &["-o", "json"]].concat());
        serde_json::from_str(&text).expect("it is JSON")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have ended by itself, and a folder that is left behind does no harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_kubeconfig_without_a_current_context_is_named_with_its_contexts() {
    let name = format!("query-{:016x}.kubeconfig", fastrand::u64(..));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let text = "current-context: ''\ncontexts: [{name: prod}, {name: kind-test}]\n";
    fs::write(&path, text).expect("the file can be written");
    let output = lariat(&["query", "pods"]).env("KUBECONFIG", &path).output();
    let output = output.expect("it runs");
    let expected = format!(
        "error: the kubeconfig {path:?} cannot be used: it has no current context; choose one of prod, kind-test with \
         `kubectl config use-context NAME`\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    fs::remove_file(path).expect("it was written");
}

fn lariat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lariat"));
    command.args(arguments).env_remove("LARIAT_TOKEN");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns a CRD with printer columns, and objects of it.
fn seed() -> Value {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer"}, "color": {"type": "string"}, "limit": {"x-kubernetes-int-or-string": true,
            "pattern": "^([0-9]+)(([KMGTPE]i)|[numkMGTPE])?$"},
    }}}});
    let columns = json!([
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    ]);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.demo.dev"},
        "spec": {"group": "demo.dev", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "shortNames": ["th"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": columns}]},
    });
    let thing = |name: &str, spec: Value| json!({"apiVersion": "demo.dev/v1", "kind": "Thing", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        definition,
        thing("a", json!({"size": 9, "color": "red", "limit": "1Gi"})),
        thing("b", json!({"size": 10, "color": "blue", "limit": "500Mi"})),
        thing("c", json!({"color": "dark blue", "limit": 7})),
    ]})
}

#[test]
fn a_custom_kind_is_filtered_and_sorted_by_the_types_of_its_schema() {
    let cluster = Cluster::start(&seed());
    let names =
        |arguments: &[&str]| cluster.answer(&[&["th"], arguments, &["-o", "name"]].concat());
    let all = |names: &[&str]| -> String {
        names
            .iter()
            .map(|name| format!("thing.demo.dev/{name}\n"))
            .collect()
    };
    assert_eq!(
        names(&["spec.size>=9", "--sort=-spec.size"]),
        all(&["b", "a"])
    );
    assert_eq!(names(&["spec.limit>501M"]), all(&["a", "b"]));
    assert_eq!(
        names(&["spec.size>=9", "spec.color=red,spec.limit=7"]),
        all(&["a"])
    );
    assert_eq!(names(&["spec.color='dark blue'"]), all(&["c"]));
    assert_eq!(
        names(&["metadata.labels[app] in (a,c)", "!spec.size"]),
        all(&["c"])
    );
    assert_eq!(names(&["--search", "blu", "spec.color"]), all(&["b", "c"]));
    // The type that is given wins: as texts, 10 comes before 9.
    assert_eq!(
        names(&[
            "spec.size",
            "--sort",
            "spec.size",
            "--field",
            "spec.size:text"
        ]),
        all(&["b", "a"])
    );

    let table = cluster.answer(&["Thing.demo.dev", "--sort", "spec.color"]);
    let lines: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["NAME", "SIZE", "COLOR", "AGE"]);
    assert_eq!(lines[1][..3], ["b", "10", "blue"]);
    assert_eq!(lines[2][..3], ["c", "<none>", "dark"]);
    let wide = cluster.answer(&["things", "-o", "wide", "--page", "1", "--page-size", "1"]);
    let heading: Vec<&str> = wide.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(heading, ["NAME", "SIZE", "COLOR", "LABELS", "AGE"]);
    let table = cluster.answer(&["things", "--columns", "spec.limit,metadata.labels.app"]);
    assert_eq!(
        table,
        "NAME   LIMIT   APP\na      1Gi     a\nb      500Mi   b\nc      7       c\n"
    );
}

#[test]
fn pods_are_paged_and_counted_in_one_namespace_or_in_all() {
    let cluster = Cluster::start(&json!({"apiVersion": "v1", "kind": "List", "items": []}));
    let all = cluster.json(&["pods", "-A"]);
    let all = all["items"].as_array().expect("objects");
    assert_eq!(all.len(), 300);
    let mut names: Vec<(&str, &str)> = all
        .iter()
        .map(|pod| {
            let text = |pointer| {
                pod.pointer(pointer)
                    .and_then(Value::as_str)
                    .expect("a text")
            };
            (text("/spec/nodeName"), text("/metadata/name"))
        })
        .collect();
    names.sort_unstable_by(|one, other| one.0.cmp(other.0).then(other.1.cmp(one.1)));
    let page = cluster.json(&[
        "po",
        "-A",
        "--sort",
        "spec.nodeName,-metadata.name",
        "--page",
        "3",
        "--page-size",
        "20",
    ]);
    assert_eq!(page["total"], 300);
    let shown = page["items"].as_array().expect("objects").iter();
    let shown: Vec<&str> = shown
        .map(|pod| pod["metadata"]["name"].as_str().unwrap())
        .collect();
    // Names in natural order may differ from that of bytes; which pods are on the page does not, nor does the first.
    assert_eq!(shown.len(), 20);
    let nodes: Vec<&str> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| pod["spec"]["nodeName"].as_str().unwrap())
        .collect();
    let expected: Vec<&str> = names[40..60].iter().map(|(node, _)| *node).collect();
    assert_eq!(nodes, expected);

    let namespace = all[0]["metadata"]["namespace"].as_str().unwrap();
    let in_one = all
        .iter()
        .filter(|pod| pod["metadata"]["namespace"] == namespace)
        .count();
    let counted = cluster.json(&["pods", "-n", namespace, "--summary", "metadata.namespace"]);
    let counts = json!([{"value": namespace, "objects": in_one}]);
    assert_eq!(counted["summaries"][0]["counts"], counts);
    assert_eq!(counted["items"], json!([]));
    assert_eq!(
        cluster.answer(&["pods"]),
        "",
        "the namespace default has none"
    );
    let nodes = cluster.answer(&["nodes", "-o", "name", "--page-size", "2"]);
    assert_eq!(nodes.lines().count(), 2);
}

#[test]
fn what_is_wrong_is_named_with_what_is_known() {
    let cluster = Cluster::start(&seed());
    for (arguments, expected) in [
        (
            &["thinks"][..],
            "no kind \"thinks\" that can be listed; did you mean things.demo.dev?",
        ),
        (&["events.demo"], "no kind \"events.demo\""),
        (
            &["things", "spec.siz=1"],
            "siz is unknown; did you mean size? (there is color, limit, size)",
        ),
        (
            &["things", "spec=1"],
            "no single value; there is color, limit, size",
        ),
        (
            &["things", "spec.size=red"],
            "\"red\" is not a whole number",
        ),
        (&["things", "--columns", "spec.weight"], "weight is unknown"),
        (
            &["things", "--columns", "spec.colour"],
            "did you mean color?",
        ),
        (&["things", "--sort", "spec.limt"], "did you mean limit?"),
        (&["pods", "spec.containers.image=a"], "image"),
        (&["pods", "spec.containers=a"], "spec.containers[*]"),
        (
            &["pods", "--field", "metadata.name:text"],
            "every kind has this field",
        ),
        (&["pods", "--kubeconfig", "/nonexistent"], "/nonexistent"),
    ] {
        let error = cluster.query(arguments).unwrap_err();
        assert!(error.starts_with("error: "), "{error}");
        assert!(error.contains(expected), "no {expected:?} in {error:?}");
    }
}
