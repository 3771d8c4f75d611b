//! `lariat top` in a terminal, on a scripted console.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::samples;
use crate::scripted::{Scripted, answer, json};
use crate::tmux::Tmux;

const LARIAT: &str = env!("CARGO_BIN_EXE_lariat");

/// How often the console sends an overview.
const PERIOD: Duration = Duration::from_millis(100);

/// Sends overviews until the client goes, or the console is to be lost.
fn stream(to: &mut TcpStream, is_lost: &AtomicBool) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let mut sent = to.write_all(head.as_bytes());
    while sent.is_ok() && !is_lost.load(Ordering::SeqCst) {
        let event = format!("event: overview\ndata: {}\n\n", json(&samples::overview()));
        sent = to.write_all(event.as_bytes());
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the pace of the console")]
fn pause() {
    std::thread::sleep(PERIOD);
}

/// Starts a console, and `lariat top` on it in a terminal.
fn start(width: u16, height: u16) -> (Tmux, Arc<AtomicBool>) {
    let (address, is_lost) = console();
    let tmux = Tmux::start(width, height);
    tmux.type_line(&format!("{LARIAT} top --url {address}; echo ended $?"));
    tmux.has("CONTROLLER");
    (tmux, is_lost)
}

/// Starts a console, which can be lost.
fn console() -> (SocketAddr, Arc<AtomicBool>) {
    let is_lost = Arc::new(AtomicBool::new(false));
    let lost = Arc::clone(&is_lost);
    let console = Scripted::start(move |path, to| match path {
        _ if lost.load(Ordering::SeqCst) => answer(to, "503 Service Unavailable", ""),
        "/api/v1/overview" => answer(to, "200 OK", &json(&samples::overview())),
        "/api/v1/overview?watch=true" => stream(to, &lost),
        _ if path.contains("/keys/") => answer(to, "200 OK", &json(&samples::key())),
        _ => answer(to, "200 OK", &json(&samples::detail())),
    });
    (console.address, is_lost)
}

#[test]
fn a_session_leads_from_a_controller_to_a_key_and_leaves_a_clean_terminal() {
    let (tmux, _) = start(80, 24);
    tmux.has("Shop.demo.dev");
    tmux.press("Enter");
    tmux.has("HANDLER");
    tmux.press("Tab");
    tmux.press("Enter");
    tmux.has("because  updated 4700 → 4711: spec.replicas");
    // Smaller and larger than before, without a key.
    tmux.resize(40, 10);
    tmux.wait("the small screen", |screen| {
        let has_title = screen.starts_with("shop-operator");
        has_title && screen.lines().count() <= 10 && screen.contains("q quit")
    });
    tmux.resize(120, 40);
    tmux.has("s sort  Tab list");
    tmux.press("Escape");
    tmux.has("HANDLER");
    tmux.press("q");
    tmux.has("ended 0");
    tmux.check_restored();
}

#[test]
fn control_c_leaves_a_clean_terminal() {
    let (tmux, _) = start(80, 24);
    tmux.press("C-c");
    tmux.has("ended 0");
    tmux.check_restored();
}

#[test]
fn a_lost_console_is_seen_until_it_answers_again() {
    let (tmux, is_lost) = start(80, 24);
    tmux.has(" live");
    is_lost.store(true, Ordering::SeqCst);
    let screen = tmux.has("connection lost");
    assert!(
        screen.contains("answers 503") && screen.contains("Deployment.apps"),
        "{screen}"
    );
    is_lost.store(false, Ordering::SeqCst);
    tmux.wait("the console", |screen| {
        screen.contains(" live") && !screen.contains("connection lost")
    });
}

#[test]
fn a_signal_to_end_leaves_a_clean_terminal() {
    let (address, _) = console();
    let tmux = Tmux::start(80, 24);
    let name = format!("top-{:016x}.pid", fastrand::u64(..));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let start = format!(
        "echo $$ >{}; exec {LARIAT} top --url {address}",
        file.display()
    );
    tmux.type_line(&format!("sh -c '{start}'; echo ended $?"));
    tmux.has("CONTROLLER");
    let pid = fs::read_to_string(&file).expect("the shell wrote it");
    let killed = Command::new("kill")
        .args(["-s", "TERM", pid.trim()])
        .status();
    assert!(killed.expect("kill runs").success());
    tmux.has("ended 130");
    tmux.check_restored();
    fs::remove_file(file).expect("it is there");
}
