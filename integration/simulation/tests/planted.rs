//! The bugs of `tests/planted` can be put back: each patch applies to the sources as they are.
//!
//! `scripts/planted.sh` puts them back one by one, and looks whether the simulator finds each.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the head of a patch says, in this order.
const HEAD: [&str; 5] = [
    "# What it does: ",
    "# Shows when: ",
    "# Breaks: ",
    "# To meet it: ",
    "# Fails with it:",
];

/// A bug that can be put back.
struct Planted {
    name: String,
    path: PathBuf,
    text: String,
}

/// Returns the root of the workspace.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the crate is in the workspace")
}

/// Returns every patch there is, by name.
fn planted() -> Vec<Planted> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted");
    let entries = fs::read_dir(&folder).expect("the folder of the patches can be read");
    let paths = entries.map(|entry| entry.expect("its entries can be read").path());
    let mut patches: Vec<Planted> = paths.map(read).collect();
    patches.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(!patches.is_empty(), "{} has no patches", folder.display());
    patches
}

fn read(path: PathBuf) -> Planted {
    let is_patch = path.extension() == Some(OsStr::new("patch"));
    assert!(is_patch, "{} is no patch", path.display());
    let name = path.file_stem().expect("it has a name").to_string_lossy();
    Planted {
        name: name.into_owned(),
        text: fs::read_to_string(&path).expect("a patch can be read"),
        path,
    }
}

/// Asks git whether a patch applies; returns what it says.
fn check(patch: &Path) -> Result<String, String> {
    let root = root();
    let mut git = Command::new("git");
    git.args(["apply", "--check", "--verbose"])
        .arg(patch)
        .current_dir(&root)
        .env("LC_ALL", "C")
        // Of sources that were unpacked inside another work tree git would pass over every path, and succeed.
        .env("GIT_CEILING_DIRECTORIES", root.parent().unwrap_or(&root));
    // In a hook they are set, and name another folder.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(name);
    }
    let output = git
        .output()
        .expect("git is installed, which applies the patches");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(said)
    } else {
        Err(said)
    }
}

#[test]
fn each_bug_can_be_put_back() {
    let mut refused = Vec::new();
    for Planted { name, path, text } in planted() {
        match check(&path) {
            Ok(said) => {
                // Nothing is checked where no path is.
                let files = text.lines().filter(|line| line.starts_with("diff --git "));
                let checked = said.matches("Checking patch ").count();
                assert!(checked > 0 && checked == files.count(), "{name}: {said}");
            }
            Err(said) => refused.push(format!("{name}: {said}")),
        }
    }
    assert!(
        refused.is_empty(),
        "make these patches again for the code as it is now, with the same bug in it:\n{}",
        refused.join("\n")
    );
}

#[test]
fn each_patch_says_what_it_does_and_how_it_is_met() {
    for Planted { name, text, .. } in planted() {
        let (head, _) = text.split_once("\ndiff --git ").expect("it has a diff");
        let stray = head
            .lines()
            .find(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(stray, None, "{name}: a line of the head is no comment");
        let places = HEAD.map(|part| head.find(part));
        assert!(
            places.iter().all(Option::is_some),
            "{name}: {places:?} of {HEAD:?}"
        );
        assert!(places.is_sorted(), "{name}: {places:?} of {HEAD:?}");
    }
}

/// Returns whether a file below a folder has a text in it.
fn is_in(folder: &Path, text: &str) -> bool {
    let entries = fs::read_dir(folder).expect("a folder of sources can be read");
    entries.into_iter().any(|entry| {
        let path = entry.expect("its entries can be read").path();
        if path.is_dir() {
            return is_in(&path, text);
        }
        let is_source = path.extension() == Some(OsStr::new("rs"));
        is_source && fs::read_to_string(&path).is_ok_and(|source| source.contains(text))
    })
}

#[test]
fn the_tests_that_fail_with_a_bug_are_there() {
    for Planted { name, text, .. } in planted() {
        let (head, _) = text.split_once("\ndiff --git ").expect("it has a diff");
        let (_, tests) = head.split_once(HEAD[4]).expect("it names tests");
        let mut count = 0;
        for line in tests.lines().filter(|line| line.len() > 1) {
            let mut words = line.trim_start_matches('#').split_whitespace();
            let (Some(krate), Some(test), None) = (words.next(), words.next(), words.next()) else {
                panic!("{name}: `{line}` is not a crate and a test");
            };
            let function = test.rsplit("::").next().unwrap_or(test);
            let folder = root()
                .join("crates")
                .join(krate.trim_start_matches("lariat-"));
            assert!(
                is_in(&folder, &format!("fn {function}(")),
                "{name}: {test} is not in {krate}"
            );
            count += 1;
        }
        assert!(count > 0, "{name}: no test fails with it");
    }
}
