//! Answers and faults of a console, and what the commands make of them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

use crate::samples;
use crate::scripted::{Following, Scripted, answer, ended, json, lariat, whole};

#[test]
fn status_ends_with_1_unless_the_program_is_ready() {
    let (code, stdout, stderr) = whole().run(&["status"]);
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    assert!(
        stdout.starts_with("shop-operator 1.4.2: ready, up 4h02m, at http://127.0.0.1:"),
        "{stdout}"
    );
    let trouble = Scripted::answering("200 OK", json(&samples::trouble()));
    let (code, stdout, _) = trouble.run(&["status"]);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("not ready"), "{stdout}");
    let (code, stdout, _) = trouble.run(&["status", "--output", "json"]);
    assert_eq!(code, Some(1));
    let read: serde_json::Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!(read["health"]["ready"], false);
}

#[test]
fn why_finds_the_run_that_caused_a_run() {
    let (code, stdout, stderr) = whole().run(&["why", "deploy", "shop/web"]);
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    let expected = "  caused by a run of Pod shop/web-1:\n    #40  12:01:34.900";
    assert!(stdout.contains(expected), "{stdout}");
    let older = stdout.find("#41 ").zip(stdout.find("#42 "));
    assert!(
        older.is_some_and(|(older, newer)| older < newer),
        "{stdout}"
    );
    let (_, stdout, _) = whole().run(&["why", "deploy", "shop/web", "-o", "json", "--runs", "1"]);
    let read: serde_json::Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!(read["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(read["runs"][0]["causedBy"][0]["causingRun"]["run"], 40);
}

#[test]
fn a_kind_and_a_key_that_are_unknown_are_named() {
    let (code, _, stderr) = whole().run(&["why", "deploymnet", "shop/web"]);
    assert_eq!(code, Some(1));
    let expected = "error: the program has no controller of \"deploymnet\"; it has Deployment.apps, Pod, \
        Shop.demo.dev; did you mean Deployment.apps?\n";
    assert_eq!(stderr, expected);
    let (code, _, stderr) = whole().run(&["why", "pod", "shop/other"]);
    assert_eq!(code, Some(1));
    assert!(stderr.ends_with("404 Not Found: no such key\n"), "{stderr}");
}

#[test]
fn one_frame_of_top_is_plain_text_and_json_is_the_overview() {
    let (code, stdout, stderr) = whole().run(&["top", "--once"]);
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    assert!(
        stdout.contains("Shop.demo.dev") && !stdout.contains('\u{1b}'),
        "{stdout}"
    );
    let (_, stdout, _) = whole().run(&["top", "--once", "-o", "json"]);
    let read: serde_json::Value = serde_json::from_str(&stdout).expect("it is JSON");
    assert_eq!(read["program"]["name"], "shop-operator");
    let (code, _, stderr) = whole().run(&["top"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("error: there is no terminal to draw in; --once"),
        "{stderr}"
    );
}

#[test]
fn a_stream_that_ends_in_the_middle_is_opened_again() {
    let opened = Mutex::new(0);
    let console = Scripted::start(move |path, stream| {
        let overview = json(&samples::overview());
        if path == "/api/v1/overview" {
            return answer(stream, "200 OK", &overview);
        }
        let number = {
            let mut opened = opened.lock().expect("no thread panics");
            *opened += 1;
            *opened
        };
        if number == 3 {
            return answer(stream, "503 Service Unavailable", "");
        }
        // One whole event, and a half.
        let half = &overview[..overview.len() / 2];
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let events =
            format!("{head}event: overview\ndata: {overview}\n\nevent: overview\ndata: {half}");
        let _ = stream.write_all(events.as_bytes());
    });
    let mut following = Following::start(&console, &["top", "-o", "json"]);
    for _ in 0..3 {
        assert_eq!(following.line()["program"]["name"], "shop-operator");
    }
    let stderr = following.end();
    assert_eq!(stderr.matches("connection lost").count(), 1, "{stderr}");
    assert!(stderr.contains("503 Service Unavailable"), "{stderr}");
}

#[track_caller]
fn check_fault(console: &Scripted, arguments: &[&str], expected: &str) {
    let (code, stdout, stderr) = console.run(arguments);
    assert_eq!((code, &stdout[..]), (Some(1), ""), "{stderr}");
    assert!(
        stderr.starts_with("error: ") && stderr.contains(expected),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn every_fault_of_a_console_is_named() {
    let page = Scripted::answering("200 OK", "<html>".to_owned());
    check_fault(
        &page,
        &["status"],
        "with something else than a console of Lariat does: it is no JSON",
    );
    let mut newer = serde_json::to_value(samples::overview()).expect("it can be written");
    newer["controllers"][1]["queue"]
        .as_object_mut()
        .expect("an object")
        .remove("ready");
    let newer = Scripted::answering("200 OK", newer.to_string());
    check_fault(
        &newer,
        &["top", "--once"],
        "in controllers[1].queue: missing field `ready`",
    );
    let refusing = Scripted::answering("401 Unauthorized", String::new());
    check_fault(
        &refusing,
        &["status"],
        "give one with --token-file or LARIAT_CONSOLE_TOKEN",
    );
    check_fault(
        &refusing,
        &["status", "--token", "sesame"],
        "it does not accept the token",
    );
    let forbidding = Scripted::answering("403 Forbidden", r#"{"message":"not you"}"#.to_owned());
    check_fault(
        &forbidding,
        &["why", "pod", "a/b"],
        "403 Forbidden: not you: ",
    );
    let other = Scripted::answering("404 Not Found", "<html>".to_owned());
    check_fault(&other, &["top", "--once"], "there is no console of Lariat");
    let closing = Scripted::start(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"program\":";
        let _ = stream.write_all(head.as_bytes());
    });
    check_fault(&closing, &["status"], "ended its answer in the middle");
    let garbage = Scripted::start(|_, stream| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n");
    });
    check_fault(&garbage, &["status"], "does not speak HTTP");
}

#[test]
fn a_console_that_is_silent_is_not_waited_for_longer_than_asked() {
    let silent = Scripted::start(|_, stream| {
        // Until the client goes.
        let _ = stream.read(&mut [0]);
    });
    check_fault(
        &silent,
        &["status", "--timeout", "1"],
        "sent nothing for 1s; --timeout waits longer",
    );
    let slow = Scripted::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{");
        let _ = stream.read(&mut [0]);
    });
    check_fault(&slow, &["status", "--timeout", "1"], "sent nothing for 1s");
}

#[test]
fn where_nothing_listens_the_error_has_the_address_the_reason_and_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let expected = format!(
        "error: cannot reach a console at http://{address}: connection refused, nothing listens there; start a program \
         that serves one with operator.serve(Console::on(\"127.0.0.1:9090\"))?, or give its address with --url or its \
         pod with --pod\n"
    );
    for command in [
        &["status"][..],
        &["top", "--once"],
        &["why", "pod", "shop/web"],
    ] {
        let arguments = [command, &["--url", &address]].concat();
        let (code, _, stderr) = ended(lariat(&arguments));
        assert_eq!((code, stderr), (Some(1), expected.clone()), "{command:?}");
    }
}

#[test]
fn the_token_is_sent_and_never_shown() {
    let console = Scripted::answering("401 Unauthorized", String::new());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("token-{:016x}", fastrand::u64(..)));
    std::fs::write(&file, "from-file\n").expect("it can be written");
    let path = file.display().to_string();
    let mut environment = lariat(&["status", "--url", &console.address.to_string()]);
    environment.env("LARIAT_CONSOLE_TOKEN", "from-environment");
    for (run, token) in [
        (
            console.run(&["status", "--token", "from-option"]),
            "from-option",
        ),
        (console.run(&["status", "--token-file", &path]), "from-file"),
        (ended(environment), "from-environment"),
    ] {
        assert!(!run.1.contains(token) && !run.2.contains(token), "{run:?}");
        let heads = console.heads();
        let sent = format!("authorization: Bearer {token}\r\n");
        assert!(heads.iter().any(|head| head.contains(&sent)), "{heads:?}");
    }
    std::fs::remove_file(file).expect("it is there");
}

#[test]
fn a_pod_is_asked_through_the_api_server() {
    let overview = "/api/v1/namespaces/shops/pods/operator-0:9090/proxy/api/v1/overview";
    let server = Scripted::start(move |path, stream| {
        if path == overview {
            return answer(stream, "200 OK", &json(&samples::overview()));
        }
        let status = r#"{"kind":"Status","message":"pods \"operator-1\" not found"}"#;
        answer(stream, "404 Not Found", status);
    });
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("kubeconfig-{:016x}", fastrand::u64(..)));
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": format!("http://{}", server.address)}}],
        "users": [{"name": "a", "user": {"token": "of-the-cluster"}}],
    });
    std::fs::write(&file, kubeconfig.to_string()).expect("it can be written");
    let path = file.display().to_string();
    let run = |pod: &str| {
        ended(lariat(&[
            "status",
            "--pod",
            pod,
            "--kubeconfig",
            &path,
            "--token",
            "of-the-console",
        ]))
    };
    let (code, stdout, stderr) = run("shops/operator-0:9090");
    assert_eq!((code, &stderr[..]), (Some(0), ""));
    assert!(
        stdout.contains("at port 9090 of pod shops/operator-0"),
        "{stdout}"
    );
    // The API server takes the one token for itself, and passes the other on.
    let head = server.heads().join("\n");
    assert!(
        head.contains("authorization: Bearer of-the-cluster\r\n"),
        "{head}"
    );
    assert!(
        head.contains("x-lariat-token: of-the-console\r\n"),
        "{head}"
    );
    let (code, _, stderr) = run("shops/operator-1:9090");
    assert_eq!(code, Some(1));
    assert!(stderr.contains("pods \"operator-1\" not found"), "{stderr}");
    std::fs::remove_file(file).expect("it is there");
}

#[test]
fn what_a_program_says_does_not_steer_the_terminal() {
    let mut overview = samples::trouble();
    overview.health.checks[1].message = Some("\u{1b}]0;title\u{7}\u{202e}bad\nline".to_owned());
    let console = Scripted::answering("200 OK", json(&overview));
    for arguments in [&["status"][..], &["top", "--once"]] {
        let (_, stdout, _) = console.run(arguments);
        assert!(
            stdout.contains("bad line") && !stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{stdout}"
        );
    }
}

#[test]
fn follow_shows_runs_as_they_come() {
    let asked = Mutex::new(0);
    let console = Scripted::start(move |path, stream| {
        if path == "/api/v1/overview" {
            return answer(stream, "200 OK", &json(&samples::overview()));
        }
        let mut key = samples::key();
        let mut asked = asked.lock().expect("no thread panics");
        *asked += 1;
        match *asked {
            // The first answer has one run less, and the second is lost.
            1 => drop(key.runs.remove(0)),
            2 => return answer(stream, "503 Service Unavailable", ""),
            _ => {}
        }
        answer(stream, "200 OK", &json(&key));
    });
    let arguments = [
        "why",
        "deployment",
        "shop/web",
        "--follow",
        "--depth",
        "0",
        "-o",
        "json",
    ];
    let mut following = Following::start(&console, &arguments);
    let runs = [41, 42].map(|_| following.line()["run"].as_u64());
    assert_eq!(runs, [Some(41), Some(42)]);
    let stderr = following.end();
    assert!(
        stderr.contains("connection lost") && stderr.contains("connected again"),
        "{stderr}"
    );
}
