//! Names of projects, beside what cargo takes.

use std::path::Path;
use std::process::{Command, Stdio};

use super::names::Name;
use super::taken;
use super::tests::Folder;

/// Returns whether cargo makes a package of a name, without a warning.
fn cargo_takes(folder: &Path, name: &str) -> bool {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["new", "--vcs", "none", "--", name]);
    let ended = cargo.current_dir(folder).stdin(Stdio::null()).output();
    let ended = ended.unwrap();
    let text = String::from_utf8_lossy(&ended.stderr);
    ended.status.success() && !text.contains("warning: package name")
}

#[test]
fn a_name_that_cargo_refuses_or_warns_about_is_refused() {
    let folder = Folder::new();
    let others = [
        "1shop",
        "9",
        "Self",
        "proc_macro",
        "rust",
        "shop.op",
        "shop op",
        "größe",
        "ü",
        "-shop",
        "_",
        "",
        "shop",
        "a1",
        "big-fox",
    ];
    let words = [taken::KEYWORDS, taken::LIBRARIES, taken::FOLDERS, &others];
    let mut refused = 0;
    for name in words.concat() {
        if !cargo_takes(&folder.0, name) {
            refused += 1;
            let error = Name::new(name).expect_err(name);
            let reasons = ["choose another name", "characters, such as "];
            assert!(reasons.iter().any(|it| error.contains(it)), "{error}");
        }
    }
    assert!(refused > 60, "{refused}");
    assert!(Name::new("big-fox").is_ok());
}

#[test]
fn every_word_that_cargo_refuses_is_known() {
    // Those of cargo's `restricted_names`.
    let keywords = "Self abstract as async await become box break const continue crate do dyn else enum extern false \
                    final fn for if impl in let loop macro match mod move mut override priv pub ref return self static \
                    struct super trait true try type typeof unsafe unsized use virtual where while yield";
    let artifacts = "deps examples build incremental";
    let windows = "con prn aux nul com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 \
                   lpt8 lpt9";
    let libraries = "core std alloc proc_macro proc-macro test";
    for words in [keywords, artifacts, windows, libraries] {
        for word in words.split_whitespace() {
            assert!(Name::new(word).is_err(), "{word}");
        }
    }
}
