//! Concurrent calls.

use lariat_integration::{example, run};

use super::assert_refused;

#[tokio::test]
async fn the_table_says_how_many_calls_there_were_and_how_many_at_once() {
    let arguments = ["--concurrency", "4", "--retries", "2", "--disable-resync"];
    let (code, stdout, stderr) = run(example("concurrency", &arguments)).await;
    assert_eq!((code, &*stderr), (Some(0), ""), "{stdout}");
    let rows = stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|row| row.len() == 7 && row[6] == "s").collect();
    let numbers: Vec<_> = rows
        .iter()
        .map(|row| (row[0], row[1], row[2], row[3], row[4]))
        .collect();
    let expected = [
        ("works", "1", "40", "40", "1"),
        ("works", "4", "40", "40", "4"),
        ("fails", "4", "40", "120", "4"),
    ];
    assert_eq!(numbers, expected, "{stdout}");
    assert!(stdout.ends_with("stopped\n"), "{stdout}");
}

#[tokio::test]
async fn zero_is_refused_where_it_makes_no_sense() {
    for option in ["--concurrency", "--interval-s"] {
        let reason = format!("{option} cannot be \"0\": number would be zero for non-zero type");
        assert_refused("concurrency", &[option, "0"], &reason).await;
    }
}
