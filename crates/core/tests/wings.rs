//! The API server uses two crates of the framework, and four of those use it: `cluster/ARCHITECTURE.md` says which.
//!
//! Dependencies for tests are left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates of the framework that the API server stands on.
const GROUND: [&str; 2] = ["lariat-core", "lariat-queue"];

/// The crates of the framework that use the API server: the façade with a feature, and what simulates and measures.
const USERS: [&str; 4] = ["lariat", "lariat-bench", "lariat-cli", "lariat-sim"];

#[test]
fn wings_depend_on_each_other_where_they_may() {
    let (framework, server) = (packages("crates"), packages("cluster"));
    let names = |packages: &[Package]| -> BTreeSet<String> {
        packages
            .iter()
            .map(|package| package.name.clone())
            .collect()
    };
    let (of_framework, of_server) = (names(&framework), names(&server));
    let mut wrong = Vec::new();
    for Package { name, uses } in &server {
        let foreign = uses.intersection(&of_framework);
        let foreign = foreign.filter(|used| !GROUND.contains(&used.as_str()));
        wrong.extend(foreign.map(|used| format!("{name} of the API server uses {used}")));
    }
    for Package { name, uses } in &framework {
        let is_user = USERS.contains(&name.as_str());
        let foreign = uses.intersection(&of_server).filter(|_| !is_user);
        wrong.extend(foreign.map(|used| format!("{name} of the framework uses {used}")));
    }
    assert!(
        of_server.len() >= 3 && of_framework.len() >= 10,
        "crates are missing"
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn dependencies_are_found_in_a_manifest() {
    let text = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\nc = { version = \"1\" }\n\n[dev-dependencies]\nd = \"1\"\n[target.'cfg(unix)'.dependencies]\ne = \"1\"\n";
    let package = Package::read(text);
    assert_eq!(package.name, "a");
    assert!(
        package.uses.iter().eq(["b", "c", "e"]),
        "{:?}",
        package.uses
    );
}

/// A package and what it depends on.
struct Package {
    name: String,
    uses: BTreeSet<String>,
}

impl Package {
    fn read(manifest: &str) -> Self {
        let (mut section, mut name, mut uses) = ("", String::new(), BTreeSet::new());
        for line in manifest.lines() {
            if let Some(head) = line.strip_prefix('[') {
                section = head.trim_end_matches(']');
            } else if let Some(rest) = line
                .strip_prefix("name = ")
                .filter(|_| section == "package")
            {
                name = rest.trim_matches('"').to_owned();
            } else if section.ends_with("dependencies") && !section.ends_with("dev-dependencies") {
                let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
                uses.extend((!used.is_empty()).then(|| used.to_owned()));
            }
        }
        Self { name, uses }
    }
}

/// Reads the manifests of a wing.
fn packages(wing: &str) -> Vec<Package> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(wing);
    let entries = fs::read_dir(&folder).expect("the wing is there");
    let manifests = entries.map(|entry| entry.expect("its entries can be read").path());
    let texts =
        manifests.filter_map(|path: PathBuf| fs::read_to_string(path.join("Cargo.toml")).ok());
    texts.map(|text| Package::read(&text)).collect()
}
