//! Running `lariat-bench`.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::process::{Command, Output};

use serde_json::Value;

fn bench(arguments: &[&str]) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_lariat-bench"));
    bench.env_remove("KUBECONFIG").args(arguments);
    bench.output().expect("it starts")
}

/// Returns what a run prints that succeeds.
pub(crate) fn printed(arguments: &[&str]) -> String {
    let output = bench(&[&["run"], arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Returns the rows of a run.
pub(crate) fn rows(arguments: &[&str]) -> Vec<Value> {
    let printed = printed(&[arguments, &["--json"]].concat());
    let rows = printed.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().expect("each line is a row")
}

/// Returns what a run complains about.
pub(crate) fn complaint(arguments: &[&str]) -> String {
    let output = bench(&[&["run"], arguments].concat());
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("it is text")
}

pub(crate) fn subjects(rows: &[Value]) -> Vec<&str> {
    let subjects = rows.iter().map(|row| row["subject"].as_str());
    subjects.map(|name| name.expect("it is named")).collect()
}
