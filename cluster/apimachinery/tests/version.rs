//! Manifests, scripts and pages that cannot use `KUBERNETES` name the same version.

use std::fs;
use std::path::{Path, PathBuf};

use lariat_apimachinery::KUBERNETES;
use regex::Regex;

/// The spellings of a version: of a feature, a variable and a generated file.
const NAMED: &str = r#"(?x)
    "v(1_[0-9]+)"
    | K8S_OPENAPI_ENABLED_VERSION[^0-9\n]{1,5}(1\.[0-9]+)
    | from\ the\ sources\ of\ Kubernetes\ (1\.[0-9]+)
"#;

/// Pages that say which version is served.
const PAGES: [&str; 2] = ["README.md", "cluster/README.md"];

#[test]
fn files_that_name_a_version_of_kubernetes_name_the_same_one() {
    let pattern = Regex::new(NAMED).expect("it is an expression");
    let mut named = Vec::new();
    for path in files(&root()) {
        let text = fs::read_to_string(&path).unwrap_or_default();
        for (line, text) in text.lines().enumerate() {
            for found in pattern.captures_iter(text) {
                let version = found.iter().flatten().last();
                let version = version.map(|version| version.as_str().replace('_', "."));
                named.push((format!("{}:{}", path.display(), line + 1), version));
            }
        }
    }
    assert!(named.len() >= 30, "files are missing: {named:#?}");
    let others: Vec<_> = named
        .iter()
        .filter(|(_, version)| version.as_deref() != Some(KUBERNETES))
        .collect();
    assert!(others.is_empty(), "{KUBERNETES} is served: {others:#?}");
}

#[test]
fn pages_say_which_version_of_kubernetes_is_served() {
    for page in PAGES {
        let text = fs::read_to_string(root().join(page)).expect("the page is there");
        let is_named = ["Kubernetes", "kube-apiserver"]
            .map(|name| text.contains(&format!("{name} {KUBERNETES}")));
        assert!(
            is_named.contains(&true),
            "{page} does not name {KUBERNETES}"
        );
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files below a folder that people or scripts write.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if path.is_dir() {
            // `crates/bench/peers` measures crates that need older versions.
            let is_left_out = matches!(&*name, "target" | "node_modules" | "peers");
            if !is_left_out && (!name.starts_with('.') || name == ".cargo") {
                found.extend(files(&path));
            }
        } else if [".toml", ".in", ".md", ".rs", ".sh", ".txt"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
    found
}
