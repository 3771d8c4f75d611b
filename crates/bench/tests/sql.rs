//! `lariat-bench run sql`, small.

use std::process::Command;

use serde_json::Value;

/// Returns the rows of a run with so many pods.
fn rows(cases: &str, subjects: &str, pods: usize) -> Vec<Value> {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_lariat-bench"));
    bench.args(["run", "sql", "--runs", "1", "--json"]);
    bench.args(["--n", &pods.to_string()]);
    bench.args(["--case", cases, "--subject", subjects]);
    let output = bench.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stdout = String::from_utf8(output.stdout).expect("it is text");
    let rows = stdout.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().expect("each line is a row")
}

#[test]
fn every_question_is_answered_by_every_subject() {
    let subjects = "memory,file-sealed,store,list";
    let cases = ["page", "broad", "keyset", "search", "summary", "total"];
    let rows = rows(&cases.join(","), subjects, 300);
    let mut expected = Vec::new();
    for subject in subjects.split(',') {
        expected.extend(cases.map(|case| (case, subject)));
    }
    let measured: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["case"].as_str().unwrap(),
                row["subject"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(measured, expected);
    for row in &rows {
        assert!(row["p50_us"].as_f64() > Some(0.0), "{row}");
        assert!(row["n"].as_u64() >= Some(5), "{row}");
    }
}

#[test]
fn a_load_and_a_storm_are_measured() {
    let rows = rows("load,storm", "file,store", 1_000);
    let sizes: Vec<_> = rows.iter().map(|row| row["n"].as_u64()).collect();
    assert_eq!(sizes, [Some(1_000), Some(200), Some(1_000), Some(200)]);
    for row in &rows {
        assert!(row["ops_per_s"].as_f64() > Some(0.0), "{row}");
        assert!(row["steady_rss_mb"].as_f64() > Some(0.0), "{row}");
        let is_file = row["subject"] == "file";
        assert_eq!(row["file_mb"].is_number(), is_file, "{row}");
    }
}
