//! A process that is killed or stopped while it writes. It is a child, which runs this program again, with a cluster of
//! its own: whatever it writes too late would be seen.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lariat_lease::{Elector, Lease};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time;

use crate::stage::{Process, Stage, red};

/// Names the server of a child; the test of children has nothing to do without it.
const WRITES: &str = "LARIAT_TEST_POSTGRES";

/// Starts a child, and waits until it has written some time, which differs from round to round.
async fn child(stage: &Stage, round: u64) -> Child {
    let number = |sql: &str| -> u64 { stage.server.sql(sql).parse().expect("a number") };
    let exists = "SELECT count(*) FROM pg_tables WHERE tablename = 'kinds4'";
    let epoch = || match number(exists) {
        0 => 0,
        _ => number("SELECT coalesce(max(epoch), 0) FROM lariat.writer4"),
    };
    let before = epoch();
    // It ends with this process, whatever becomes of that.
    let mut child = Command::new("setpriv");
    child.args(["--pdeathsig", "KILL"]);
    child.arg(std::env::current_exe().expect("it runs"));
    child.args(["--exact", "killed::a_child_writes_until_it_is_killed"]);
    child
        .env(WRITES, &stage.server.folder)
        .stdout(Stdio::null());
    let child = child.spawn().expect("started");
    // The one before has written nothing since it began.
    let changes = "SELECT coalesce(sum(change), 0) FROM lariat.kinds4";
    while epoch() == before || number(changes) < 20 * round {
        time::sleep(Duration::from_millis(5)).await;
    }
    child
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(WRITES) else {
        return;
    };
    let stage = Stage::beside(folder.into()).await;
    let _process = stage.start().await;
    for number in 0_u64.. {
        let name = format!("child-{}", number % 100);
        if number >= 100 {
            stage.delete(&name).await;
        }
        stage
            .create(&name, json!({"color": "red", "size": "x".repeat(3000)}))
            .await;
    }
}

/// Waits until what the child has left is replaced; no answer has a part of both.
async fn until_it_is_there(process: &Process, version: &str) {
    loop {
        let names = process.names(version).await;
        if names == ["one"] {
            return;
        }
        let left = names.iter().all(|name| name.starts_with("child-"));
        assert!(left, "{names:?}");
        time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn another_takes_over_from_one_that_is_killed() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    for round in 1..4 {
        let mut child = child(&stage, round).await;
        child.kill().expect("killed");
        child.wait().expect("it has ended");
        let process = stage.start().await;
        process.becomes(true).await;
        until_it_is_there(&process, &version).await;
        process.stop().await;
    }
}

#[tokio::test]
async fn a_suspended_writer_writes_nothing_when_it_resumes() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let mut child = child(&stage, 1).await;
    let signal = |signal: &str| {
        let mut kill = Command::new("kill");
        let sent = kill.args(["-s", signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    };
    signal("STOP");
    let elector = Elector::new(stage.cluster.client(), Lease::new("fleet")).expect("it is valid");
    let options = stage.options().written_by_leader(elector.leadership());
    let leader = stage
        .start_with(options, |builder| builder)
        .await
        .expect("started");
    let mut run = JoinSet::new();
    run.spawn(async move { elector.run(std::future::pending()).await });
    leader.becomes(true).await;
    until_it_is_there(&leader, &version).await;
    signal("CONT");
    // It finds that another process writes, and only reads.
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lariat-sql'";
    while stage.server.sql(sessions) != "2" {
        time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(leader.names(&version).await, ["one"]);
    assert!(leader.sql.is_writing());
    child.kill().expect("killed");
    child.wait().expect("it has ended");
}
