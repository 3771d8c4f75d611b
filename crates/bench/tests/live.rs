//! `lariat-bench run` of what reads from the embedded server, and of the queue, small.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

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
        assert_eq!(row["void"], Value::Null, "{row}");
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

#[test]
fn server_counts_lists_and_watches_of_pods() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_lariat-bench"));
    server.args(["serve", "--pods", "3"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let server = server.as_mut().expect("it starts");
    let mut answers = BufReader::new(server.stdout.take().expect("it is piped")).lines();
    let mut answer = || answers.next().expect("it goes on").expect("it is text");
    let ready = answer();
    let address = ready.strip_prefix("ready http://").expect("it is ready");
    let read = |path: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it reads");
        let mut head = String::new();
        let read = BufReader::new(stream).read_line(&mut head);
        read.expect("it answers");
    };
    let mut input = server.stdin.take().expect("it is piped");
    for (path, expected) in [
        ("/api/v1/namespaces/default/pods/web-0", "loaded 0"),
        ("/api/v1/nodes", "loaded 0"),
        ("/api/v1/pods?limit=1", "loaded 1"),
        ("/api/v1/namespaces/default/pods", "loaded 2"),
        ("/api/v1/pods?watch=true&timeoutSeconds=1", "loaded 3"),
    ] {
        read(path);
        writeln!(input, "loads").expect("it reads");
        assert_eq!(answer(), expected, "{path}");
    }
    drop(input);
    assert!(server.wait().expect("it ends").success());
}
