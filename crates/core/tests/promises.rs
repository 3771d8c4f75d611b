//! The tests that `docs/promises.md` names exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Marks a row whose sentence has no test.
const NONE: &str = "no test";

#[test]
fn tests_named_by_promises_exist() {
    let rows = rows();
    assert!(rows.len() >= 50, "the tables of promises were not found");
    let mut wrong = Vec::new();
    for row in &rows {
        let named: Vec<(&str, &str)> = row.split('`').filter_map(test).collect();
        if named.is_empty() && !row.ends_with(NONE) {
            wrong.push(format!("names no test: {row}"));
        }
        let missing = named
            .iter()
            .filter(|(krate, name)| !tests_of(krate).contains(*name));
        wrong.extend(missing.map(|(krate, name)| format!("there is no test {krate}::{name}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn test_functions_are_found_in_code() {
    let code = "#[test]\nfn a() {}\n#[tokio::test(start_paused = true)]\n#[cfg(unix)]\nasync fn b_c() {}\nfn d() {}";
    let found: Vec<String> = tests_in(code).collect();
    assert_eq!(found, ["a", "b_c"]);
}

/// Returns the rows of the page's tables, without their heads.
fn rows() -> Vec<String> {
    let page = root().join("docs/promises.md");
    let page = fs::read_to_string(&page).expect("docs/promises.md can be read");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let rows = rows
        .map(str::trim)
        .filter(|row| !row.ends_with("| test") && !row.starts_with("--"));
    rows.map(str::to_owned).collect()
}

/// Splits `controller::key_is_held` into its crate and its test.
fn test(code: &str) -> Option<(&str, &str)> {
    let (krate, name) = code.split_once("::")?;
    let is_name = |text: &str| {
        text.chars()
            .all(|each| each.is_ascii_lowercase() || "_0123456789".contains(each))
    };
    (is_name(krate) && is_name(name)).then_some((krate, name))
}

/// Returns the names of all tests of a crate, whose name is without `lariat-`.
fn tests_of(krate: &str) -> BTreeSet<String> {
    let mut files = Vec::new();
    for wing in ["crates", "cluster"] {
        for part in ["src", "tests"] {
            sources(&root().join(wing).join(krate).join(part), &mut files);
        }
    }
    let texts = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source can be read"));
    texts
        .flat_map(|text| tests_in(&text).collect::<Vec<_>>())
        .collect()
}

/// Returns the functions with an attribute that ends with `test`.
fn tests_in(code: &str) -> impl Iterator<Item = String> {
    let parts = code
        .split("#[")
        .filter(|part| part.starts_with("test]") || part.starts_with("tokio::test"));
    let starts = parts.map(|part| part.as_ptr() as usize - code.as_ptr() as usize);
    starts.filter_map(|start| {
        let (_, name) = code[start..].split_once("fn ")?;
        Some(name[..name.find('(')?].to_owned())
    })
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("its entries can be read").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
