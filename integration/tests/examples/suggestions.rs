//! What the examples suggest to whoever watches: on the embedded cluster, each has one of its own.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lariat_integration::{example, kubectl_path};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

type Lines = tokio::io::Lines<BufReader<ChildStdout>>;

/// Watches an example, does all it suggests up to the command that begins with `last`, and waits for what it tells.
async fn check(name: &str, arguments: &[&str], last: &str, told: &str) {
    let arguments = [&["--watch"], arguments].concat();
    let mut command = example(name, &arguments);
    let mut child = command.env_remove("KUBECONFIG").spawn().expect("it runs");
    let output = child.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).lines();
    for command in suggested(&mut lines, last).await {
        assert_eq!(shell(&command).await, "", "{command}");
    }
    until(&mut lines, told).await;
}

#[tokio::test]
async fn of_the_autoscaler() {
    check("autoscaler", &[], "k patch", "deleted pod").await;
}

#[tokio::test]
async fn of_concurrency() {
    check(
        "concurrency",
        &[],
        "k create",
        "handled beside 2 others: added at",
    )
    .await;
}

#[tokio::test]
async fn of_the_counting_autoscaler() {
    check("cpu_autoscaler", &[], "k get", "1 ready, should be 2").await;
}

#[tokio::test]
async fn of_custom_config() {
    check("custom_config", &[], "k run failing", "fails: attempt 2").await;
}

#[tokio::test]
async fn of_the_dynamic_audit() {
    check("dynamic_audit", &[], "k delete", "is gone").await;
}

#[tokio::test]
async fn of_the_kronjob() {
    check("kronjob", &[], "k get", "").await;
}

#[tokio::test]
async fn of_metrics() {
    check("metrics", &["--listen", "127.0.0.1:0"], "curl", "").await;
}

#[tokio::test]
async fn of_multi_resource() {
    check("multi_resource", &[], "k scale", "4 of 4 ready").await;
}

#[tokio::test]
async fn of_the_pod_logger() {
    check("pod_logger", &[], "k delete", "deleted      pod-logger-").await;
}

#[tokio::test]
async fn of_the_pod_terminator() {
    check("pod_terminator", &[], "k get", "kills 50 %").await;
}

#[tokio::test]
async fn of_related_kinds() {
    check("related_kinds", &[], "k patch", "is looked after").await;
}

#[tokio::test]
async fn of_the_sample_controller() {
    check("sample_controller", &[], "k get", "1 changed").await;
}

#[tokio::test]
async fn of_the_lever() {
    let arguments = ["--stage", "3", "--delay", "0.1"];
    check(
        "useless_machine",
        &arguments,
        "k get",
        "flips its switch down",
    )
    .await;
}

#[tokio::test]
async fn of_the_robot() {
    check(
        "useless_machine",
        &["--delay", "0.1"],
        "k patch",
        "is flipped down",
    )
    .await;
}

/// Reads the commands an example suggests: those that can be run by themselves.
async fn suggested(lines: &mut Lines, last: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut kubectl = String::new();
    loop {
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line
            .expect("it suggests something")
            .expect("it can be read");
        let line = line.unwrap_or_else(|| panic!("it ended before {last:?}: {commands:?}"));
        let Some(command) = line.strip_prefix("    ") else {
            continue;
        };
        match command.starts_with("k()") {
            true => kubectl = command.to_owned(),
            false if command.starts_with("curl") => {}
            false => commands.push(format!("{kubectl}\n{command}")),
        }
        if command.starts_with(last) {
            return commands;
        }
    }
}

/// Runs a command, again while what it is about may not be there yet; returns why it fails.
async fn shell(command: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let kubectl = kubectl_path().expect("it is installed");
    let mut path = OsString::from(kubectl.parent().expect("it is in a folder"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut why = String::new();
    for _ in 0..50 {
        let mut shell = Command::new("sh");
        shell
            .args(["-euc", command])
            .env("PATH", &path)
            .env_remove("KUBECONFIG");
        shell
            .current_dir(root.expect("it is in a workspace"))
            .stdin(Stdio::null());
        let ended = timeout(PATIENCE, shell.output()).await;
        let ended = ended.expect("it ends").expect("it runs");
        if ended.status.success() {
            return String::new();
        }
        why = String::from_utf8_lossy(&ended.stderr).into_owned();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    why
}

async fn until(lines: &mut Lines, told: &str) {
    let mut text = String::new();
    while !text.contains(told) {
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("it has not told {told:?}:\n{text}"));
        text += &line.expect("it can be read").expect("it goes on");
        text.push('\n');
    }
}
