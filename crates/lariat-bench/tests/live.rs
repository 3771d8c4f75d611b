//! `lariat-bench run` of what reads from the embedded server, and of the queue, small.

mod common;

use serde_json::Value;

use common::{printed, rows, subjects};

#[test]
fn the_floor_is_measured_beside_the_others() {
    let sync = ["sync", "--n", "100", "--runs", "1", "--handlers", "1"];
    let rows = rows(&[&sync[..], &["--case", "metadata"]].concat());
    assert_eq!(
        subjects(&rows),
        ["lariat", "kube-rs", "floor", "floor-scan"]
    );
    for row in &rows {
        assert_eq!(row["n"], 100, "{row}");
        assert!(row["cpu_s"].as_f64() > Some(0.0), "{row}");
    }
}

#[test]
fn the_floor_of_lists_and_of_both_protocols_is_measured() {
    let floors = "floor-lists,floor-http1,floor-http2,floor-one-thread";
    let rows = rows(&[
        "sync",
        "--n",
        "600",
        "--runs",
        "1",
        "--handlers",
        "1,10",
        "--case",
        "typed",
        "--subject",
        floors,
    ]);
    // With ten handlers there is no floor: it has none.
    assert_eq!(subjects(&rows).join(","), floors);
}

#[test]
fn subjects_take_turns_and_each_row_has_the_range_of_its_runs() {
    let interleaved = [
        "storm",
        "--pods",
        "50",
        "--n",
        "120",
        "--runs",
        "2",
        "--handlers",
        "1",
        "--case",
        "typed",
        "--subject",
        "lariat,floor",
        "--interleave",
    ];
    let rows = rows(&interleaved);
    let turn = ["lariat", "floor"];
    assert_eq!(subjects(&rows), [turn, turn].concat());
    for row in &rows {
        let (runs, merged) = (row["handler_runs"].as_u64().unwrap(), &row["merged"]);
        if row["subject"] == "lariat" {
            assert_eq!(merged.as_u64().unwrap() + runs, 120, "{row}");
        } else {
            // Every line of the watch.
            assert_eq!((runs, merged), (120, &Value::Null), "{row}");
        }
    }
}

#[test]
fn a_table_has_medians_with_their_range() {
    let table = printed(&[
        "queue",
        "--case",
        "distinct-1x1",
        "--n",
        "2000",
        "--runs",
        "2",
    ]);
    let lariat = table.lines().find(|line| line.contains(" lariat "));
    let lariat = lariat.expect("it is measured");
    assert!(lariat.contains('[') && lariat.contains('–'), "{lariat}");
}

#[test]
fn delays_are_paced() {
    let paced = [
        "queue",
        "--case",
        "delayed-paced",
        "--n",
        "500",
        "--runs",
        "1",
    ];
    let rows = rows(&[&paced[..], &["--rate", "5000"]].concat());
    assert_eq!(subjects(&rows), ["lariat", "kube-rs"]);
    for row in &rows {
        assert_eq!(row["rate"], 5000, "{row}");
        assert!(row["p99_us"].as_f64() >= row["p50_us"].as_f64(), "{row}");
    }
}

#[test]
fn lines_of_changes_are_timed_when_they_arrive() {
    let rows = rows(&[
        "latency",
        "--pods",
        "60",
        "--n",
        "20",
        "--runs",
        "1",
        "--handlers",
        "1",
        "--case",
        "idle,load",
        "--rate",
        "600",
        "--subject",
        "lariat,floor,floor-scan",
    ]);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert!(row["p50_us"].as_f64() > Some(0.0), "{row}");
        assert!(row["p99_us"].as_f64() >= row["p50_us"].as_f64(), "{row}");
    }
}
