//! All examples are tested here, and listed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The most lines of an example of one file.
const LINES: usize = 100;

fn workspace() -> PathBuf {
    let integration = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = integration.parent().expect("it is in the workspace");
    workspace.to_path_buf()
}

fn read(path: impl AsRef<Path>) -> String {
    let path = workspace().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the names of the entries of a folder.
fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(workspace().join(folder)).expect("the folder exists");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    names.filter_map(|name| name.into_string().ok()).collect()
}

/// Returns the examples by the two kinds of their paths: `NAME.rs`, and `operators/NAME/main.rs`.
fn examples() -> (BTreeSet<String>, BTreeSet<String>) {
    let files = entries("examples").into_iter();
    let files = files.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()));
    let is_program = |name: &String| {
        let main = format!("examples/operators/{name}/main.rs");
        workspace().join(main).is_file()
    };
    let operators = entries("examples/operators").into_iter().filter(is_program);
    (files.collect(), operators.collect())
}

#[test]
fn each_example_is_a_target_and_in_the_list() {
    let (files, operators) = examples();
    assert_eq!(files.len(), 12, "{files:?}");
    check_package("examples", &files, ".rs");
    check_package("examples/operators", &operators, "/main.rs");
}

/// Checks that a package has a target for each example, and the list a command; `path` follows their names.
fn check_package(folder: &str, names: &BTreeSet<String>, path: &str) {
    let targets = read(format!("{folder}/Cargo.toml"));
    let list = read("examples/README.md");
    for name in names {
        let target = format!("[[example]]\nname = \"{name}\"\npath = \"{name}{path}\"\n");
        assert!(targets.contains(&target), "{folder}/{name} is no target");
        let command = format!(" --example {name}`");
        let command_with_options = format!(" --example {name} -- ");
        assert!(
            list.contains(&command) || list.contains(&command_with_options),
            "README.md does not have {command}"
        );
    }
    assert_eq!(targets.matches("[[example]]").count(), names.len());
}

#[test]
fn examples_of_one_file_are_short_and_say_how_to_run_them() {
    for name in examples().0 {
        let text = read(format!("examples/{name}.rs"));
        let lines = text.lines().count();
        assert!(lines <= LINES, "{name} has {lines} lines");
        let commands = ["", "--features console ", "--features webhook "]
            .map(|features| format!("//! Run: `cargo run {features}--example {name}`"));
        let has_command = commands.iter().any(|command| text.contains(command));
        assert!(has_command, "{name} does not have {}", commands[0]);
    }
}

#[test]
fn each_example_is_run_by_a_test() {
    let sources = entries("integration/tests/examples").into_iter();
    let sources = sources.map(|name| read(format!("integration/tests/examples/{name}")));
    // Calls may be broken into lines.
    let sources = sources.collect::<String>().replace(char::is_whitespace, "");
    let (files, operators) = examples();
    for name in files.iter().chain(&operators) {
        let is_run = ["example", "runs"]
            .iter()
            .any(|call| sources.contains(&format!("{call}(\"{name}\",")));
        assert!(is_run, "no test runs {name}");
    }
}
