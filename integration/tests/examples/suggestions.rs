//! What the examples suggest to their users: on the embedded cluster, each has one of its own.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use lariat_integration::{example, kubectl_path};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(60);

type Lines = tokio::io::Lines<BufReader<ChildStdout>>;

/// Watches an example, runs the commands it suggests up to the one that begins with `last`, and waits for the lines it
/// prints.
async fn check(name: &str, arguments: &[&str], last: &str, expected: &str) {
    let (_child, mut lines) = watch(name, arguments);
    for command in suggested(&mut lines, last).await {
        run(&command).await;
    }
    until(&mut lines, expected).await;
}

fn watch(name: &str, arguments: &[&str]) -> (Child, Lines) {
    let arguments = [&["--watch"], arguments].concat();
    let mut command = example(name, &arguments);
    let mut child = command.env_remove("KUBECONFIG").spawn().expect("it runs");
    let output = child.stdout.take().expect("it is piped");
    (child, BufReader::new(output).lines())
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
    check("dynamic_audit", &[], "k delete", "is deleted").await;
}

/// The next time may be a minute away, so the schedule is changed to an invalid one, which the operator reports
/// immediately.
#[tokio::test]
async fn of_the_kronjob() {
    let (_child, mut lines) = watch("kronjob", &[]);
    let commands = suggested(&mut lines, "k get").await;
    for command in &commands {
        run(command).await;
    }
    let (kubectl, _) = commands[0].split_once('\n').expect("k is defined first");
    let never = r#"--type merge --patch '{"spec": {"schedule": "never"}}'"#;
    run(&format!("{kubectl}\nk patch kronjob hello {never}")).await;
    until(&mut lines, "the schedule \\\"never\\\" cannot be read").await;
}

#[tokio::test]
async fn of_the_failover() {
    let arguments = ["--lease-s", "3"];
    check("failover", &arguments, "kill -9", "ended: signal: 9").await;
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
    check("related_kinds", &[], "k patch", "is managed").await;
}

#[tokio::test]
async fn of_the_sample_controller() {
    check("sample_controller", &[], "k get", "1 changed").await;
}

#[tokio::test]
async fn of_sharding() {
    let arguments = ["--lease-s", "3"];
    check("sharded", &arguments, "kill -9", "ended: signal: 9").await;
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

#[tokio::test]
async fn of_websites() {
    check("website", &[], "k get websites,", "is ready").await;
}

/// Reads the commands an example suggests: those that can be run by themselves.
async fn suggested(lines: &mut Lines, last: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut kubectl = String::new();
    loop {
        let line = timeout(TIMEOUT, lines.next_line()).await;
        let line = line
            .expect("it suggests something")
            .expect("it can be read");
        let line = line.unwrap_or_else(|| panic!("it ended before {last:?}: {commands:?}"));
        let Some(command) = line.strip_prefix("    ") else {
            continue;
        };
        if command.starts_with("k()") {
            kubectl = command.to_owned()
        } else {
            commands.push(format!("{kubectl}\n{command}"))
        }
        if command.starts_with(last) {
            return commands;
        }
    }
}

/// Runs a command that has to succeed.
async fn run(command: &str) {
    assert_eq!(shell(command).await, "", "{command}");
}

/// Runs a command in some folder, again while what it is about may not be there yet; returns why it fails.
async fn shell(command: &str) -> String {
    let kubectl = kubectl_path().expect("it is installed");
    let mut path = OsString::from(kubectl.parent().expect("it is in a folder"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut reason = String::new();
    for _ in 0..50 {
        let mut shell = Command::new("sh");
        shell
            .args(["-euc", command])
            .env("PATH", &path)
            .env_remove("KUBECONFIG");
        shell.current_dir("/").stdin(Stdio::null());
        let ended = timeout(TIMEOUT, shell.output()).await;
        let ended = ended.expect("it ends").expect("it runs");
        if ended.status.success() {
            return String::new();
        }
        reason = String::from_utf8_lossy(&ended.stderr).into_owned();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    reason
}

async fn until(lines: &mut Lines, expected: &str) {
    let mut text = String::new();
    while !text.contains(expected) {
        let line = timeout(TIMEOUT, lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("it has not printed {expected:?}:\n{text}"));
        text += &line.expect("it can be read").expect("it goes on");
        text.push('\n');
    }
}
