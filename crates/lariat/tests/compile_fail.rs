//! The compiler's messages for mistakes that users make when they write handlers.
//!
//! The messages are those of one version of the compiler, so other versions do not run them. After an update:
//! `INSTA_UPDATE=always cargo test -p lariat --test compile_fail`, and read the difference.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The version whose messages are recorded.
const RUSTC: &str = "rustc 1.95.";

/// The checkout this is.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The libraries that the programs use.
const LIBRARIES: [&str; 2] = ["k8s_openapi", "lariat"];

#[test]
fn mistakes_are_explained() {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc).arg("--version").output();
    let version = String::from_utf8(output.expect("rustc runs").stdout).expect("it is text");
    if !version.starts_with(RUSTC) {
        eprintln!("the messages of {version} are not compared with those of {RUSTC}");
        return;
    }
    let libraries = libraries();
    for program in programs() {
        let mut compile = Command::new(&rustc);
        compile.args(["--edition=2024", "--emit=metadata"]);
        compile.args(["--diagnostic-width=140", "--out-dir"]);
        compile.arg(env!("CARGO_TARGET_TMPDIR"));
        for (name, path) in LIBRARIES.iter().zip(&libraries) {
            let folder = path.parent().expect("it is in a folder").display();
            compile.arg("-L").arg(format!("dependency={folder}"));
            compile.arg(format!("--extern={name}={}", path.display()));
        }
        let output = compile.arg(&program).current_dir(ROOT).output();
        let output = output.expect("rustc runs");
        assert!(!output.status.success(), "{program:?} compiles");
        let name = program.file_stem().expect("a name").to_string_lossy();
        let message = String::from_utf8(output.stderr).expect("it is text");
        insta::assert_snapshot!(name.into_owned(), without_places(&message));
    }
}

/// Returns the programs that do not compile, as paths below the checkout.
fn programs() -> Vec<PathBuf> {
    let folder = Path::new("crates/lariat/tests/compile_fail");
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).expect("it is there");
    let names = entries.map(|entry| entry.expect("readable").file_name());
    let mut programs: Vec<_> = names.map(|name| folder.join(name)).collect();
    programs.sort();
    assert!(!programs.is_empty());
    programs
}

/// Returns the libraries of the build of this test.
fn libraries() -> [PathBuf; 2] {
    let mut cargo = Command::new(env!("CARGO"));
    // Build scripts read cargo's variables of this test, and would run again.
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    cargo.args([
        "build",
        "--workspace",
        "--all-features",
        "--profile=test",
        "--lib",
    ]);
    // With an example cargo turns on the features of development dependencies, as it does for tests.
    cargo.args(["--example=quickstart", "--message-format=json"]);
    let output = cargo.current_dir(ROOT).output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let messages = String::from_utf8(output.stdout).expect("it is text");
    LIBRARIES.map(|name| library(name, &messages))
}

/// Finds a library in cargo's messages.
fn library(name: &str, messages: &str) -> PathBuf {
    let found = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).expect("JSON");
        let is_library = message["target"]["name"] == name && message["target"]["kind"][0] == "lib";
        let path = message["filenames"][0].as_str().map(PathBuf::from);
        path.filter(|_| is_library)
    });
    found.unwrap_or_else(|| panic!("cargo has built no library {name}"))
}

/// Removes line numbers of Lariat's sources, and the files that rustc writes.
fn without_places(message: &str) -> String {
    let root = Path::new(ROOT).canonicalize().expect("it is there");
    let message = message.replace(&format!("{}/", root.display()), "");
    let is_of_build =
        |line: &&str| line.contains("the full name for the type") || line.contains("`--verbose`");
    let lines = message.lines().filter(|line| !is_of_build(line));
    let mut text = String::new();
    let mut is_own = false;
    for line in lines.take_while(|line| !line.starts_with("error: aborting")) {
        if let Some((before, place)) = line.split_once("--> ") {
            is_own = !place.starts_with("crates/lariat/tests/");
            let end = if is_own { place.find(':') } else { None };
            text += &format!("{before}--> {}\n", &place[..end.unwrap_or(place.len())]);
        } else if is_own && let Some((gutter, code)) = line.split_once('|') {
            text += &format!("{}|{code}\n", without_digits(gutter));
        } else if line.ends_with(" others") {
            text += &format!("{}\n", without_digits(line));
        } else {
            // A note or a help that follows may show the program again.
            is_own &= !line.starts_with(char::is_alphabetic);
            text += &format!("{line}\n");
        }
    }
    text
}

fn without_digits(text: &str) -> String {
    text.replace(|letter: char| letter.is_ascii_digit(), " ")
}
