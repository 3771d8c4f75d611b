//! The console of a cluster.

use serde_json::{Value as Json, json};
use tokio::time::timeout;

use crate::console_bench::{Bench, JSON, PODS, find, rest, send, until};
use crate::program::{Folder, TIMEOUT, run};

#[tokio::test]
async fn objects_watches_and_requests_are_shown() {
    let bench = Bench::start(&["--load", "pods=8,nodes=2,namespaces=2"]).await;
    let mut watch = bench.watch("/api/v1/pods?watch=true").await;
    until(&mut watch, "pod-").await;
    let path = format!("{PODS}/none?access_token=hunter2&pretty=true");
    assert_eq!(bench.code(&path).await, Some(404));
    let state = bench.state().await;
    let pods = find(&state["resources"], "kind", "Pod");
    assert_eq!(pods["objects"], 8);
    let namespaces = pods["namespaces"].as_array().expect("a list");
    let counts = namespaces.iter().map(|each| each["objects"].as_u64());
    assert_eq!(counts.sum::<Option<u64>>(), Some(8));
    assert_eq!(state["watches"]["total"], 1);
    let open = &state["watches"]["items"][0];
    assert_eq!(
        (
            &open["kind"],
            &open["client"],
            &open["user"],
            &open["namespace"]
        ),
        (
            &json!("Pod"),
            &json!("shop/1"),
            &json!("kubernetes-admin"),
            &Json::Null
        )
    );
    let last = &state["requests"][0];
    assert_eq!(last["path"], format!("{PODS}/none?…&pretty=true"));
    assert_eq!((&last["code"], &last["verb"]), (&json!(404), &json!("get")));
    assert_eq!(last["client"], "shop/1");
    assert!(
        last["seconds"]
            .as_f64()
            .is_some_and(|seconds| seconds >= 0.0)
    );
    assert!(!state.to_string().contains("hunter2"));
    for number in [
        "/revision",
        "/memoryBytes",
        "/history/changes",
        "/history/capacity",
        "/bytes",
    ] {
        let value = state.pointer(number).and_then(Json::as_u64);
        assert!(value.is_some_and(|value| value > 0), "{number}: {value:?}");
    }
    assert_eq!(state["url"], bench.served.url);
    drop(watch);
}

#[tokio::test]
async fn the_state_is_sent_every_second() {
    let bench = Bench::start(&[]).await;
    let mut events = send(&bench.console, "GET", "/api/v1/state?watch=true", "", "").await;
    let first = until(&mut events, "\n\n").await;
    assert!(
        first
            .to_lowercase()
            .contains("content-type: text/event-stream"),
        "{first}"
    );
    assert!(!first.contains("ConfigMap"), "{first}");
    bench.create("late").await;
    until(&mut events, "ConfigMap").await;
    // An open stream does not keep the program.
    bench.served.signal("INT").await;
    let mut child = bench.served.child;
    let ended = timeout(TIMEOUT, child.wait()).await;
    assert!(ended.expect("it ends").expect("it ran").success());
}

#[tokio::test]
async fn the_list_of_requests_is_bounded() {
    let bench = Bench::start(&[]).await;
    let before = bench.state().await["journal"]["total"]
        .as_u64()
        .expect("a number");
    for number in 0..250 {
        bench.code(&format!("/version?limit={number}")).await;
    }
    let state = bench.state().await;
    let requests = state["requests"].as_array().expect("a list");
    assert_eq!(requests.len(), 200);
    assert_eq!(requests[0]["path"], "/version?limit=249");
    assert_eq!(requests[199]["path"], "/version?limit=50");
    assert_eq!(state["journal"]["total"], before + 250);
    let ids: Vec<u64> = requests
        .iter()
        .filter_map(|each| each["id"].as_u64())
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1] + 1), "{ids:?}");
}

#[tokio::test]
async fn errors_and_delays_are_switched_on_and_off() {
    let bench = Bench::start(&[]).await;
    for code in [429, 500, 503] {
        let fault = json!({"action": {"refuse": {"code": code}}, "kind": "Pod"});
        let id = bench.add("/api/v1/faults", fault).await;
        assert_eq!(bench.code(PODS).await, Some(code));
        assert_eq!(bench.code("/api/v1/nodes").await, Some(200));
        let state = bench.state().await;
        let listed = find(&state["faults"], "id", &id);
        let text = listed["text"].as_str().expect("a text");
        let expected = format!("All requests for the kind Pod are answered {code} ");
        assert!(text.starts_with(&expected), "{text}");
        assert_eq!(
            (&listed["hits"], &listed["legal"]),
            (&json!(1), &json!(true))
        );
        let disturbed = find(&state["requests"], "path", PODS)["faults"][0].as_str();
        assert!(disturbed.is_some_and(|text| text.starts_with("are answered")));
        bench.remove(&id).await;
        assert_eq!(bench.code(PODS).await, Some(200));
    }
    let fault = json!({"action": {"delay": {"seconds": 0.3}}, "verb": "list"});
    let id = bench.add("/api/v1/faults", fault).await;
    assert_eq!(bench.code(PODS).await, Some(200));
    bench.remove(&id).await;
    assert_eq!(bench.code("/api/v1/nodes").await, Some(200));
    let state = bench.state().await;
    let took = |path| find(&state["requests"], "path", path)["seconds"].as_f64();
    assert!(
        took(PODS).is_some_and(|seconds| seconds >= 0.3),
        "{state:#}"
    );
    assert_eq!(
        find(&state["requests"], "path", "/api/v1/nodes")["faults"],
        json!([])
    );
    assert_eq!(state["faults"], json!([]));
}

#[tokio::test]
async fn watches_are_cut_and_history_expires() {
    let bench = Bench::start(&[]).await;
    let old = bench.create("a").await["metadata"]["resourceVersion"].clone();
    let from = format!(
        "/api/v1/configmaps?watch=true&resourceVersion={}",
        old.as_str().expect("a text")
    );
    // Cut: the last chunk and half of a line are missing.
    let watch = bench.watch(&from).await;
    bench.once("watches/cut").await;
    let cut = rest(watch).await;
    assert!(!cut.ends_with("0\r\n\r\n"), "{cut}");
    let watch = bench.watch(&from).await;
    bench.once("watches/end").await;
    let ended = rest(watch).await;
    assert!(ended.ends_with("0\r\n\r\n"), "{ended}");
    // As a rule, for watches from a version, and as a fact.
    let id = bench.add("/api/v1/faults", json!({"action": "gone"})).await;
    assert_eq!(bench.code(&from).await, Some(410));
    bench.remove(&id).await;
    drop(bench.watch(&from).await);
    bench.create("b").await;
    bench.once("history/expire").await;
    let mut watch = bench.watch(&from).await;
    until(&mut watch, "\"code\":410").await;
    assert_eq!(bench.state().await["history"]["changes"], 0);
}

#[tokio::test]
async fn a_client_is_isolated_and_comes_back() {
    let bench = Bench::start(&[]).await;
    let open = bench.watch("/api/v1/pods?watch=true").await;
    let id = bench
        .add("/api/v1/faults/isolate", json!({"client": "shop/"}))
        .await;
    rest(open).await;
    assert_eq!(bench.code(PODS).await, None);
    assert_eq!(bench.code_of(PODS, "other/1").await, Some(200));
    assert_eq!(bench.state().await["watches"]["total"], 0);
    bench.remove(&id).await;
    assert_eq!(bench.code(PODS).await, Some(200));
    bench
        .add(
            "/api/v1/faults/isolate",
            json!({"client": "a/", "silent": true}),
        )
        .await;
    bench
        .add("/api/v1/faults", json!({"action": "conflict", "times": 1}))
        .await;
    let state = bench.state().await;
    assert_eq!(state["faults"].as_array().map(Vec::len), Some(2));
    let answer = bench.console("DELETE", "/api/v1/faults", "", "").await;
    assert_eq!(answer.code, 200);
    assert_eq!(bench.state().await["faults"], json!([]));
}

const FAULTS: &str = "/api/v1/faults";
const GONE: &str = r#"{"action": "gone"}"#;

/// Method, path, headers and body of a request; the code of the answer, and a part of its message.
type Refused = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    u16,
    &'static str,
);

/// What pages of other sites might send.
#[rustfmt::skip]
const FROM_OTHER_SITES: [Refused; 8] = [
    ("POST", FAULTS, "Origin: http://evil.example\r\nContent-Type: application/json\r\n", GONE, 403, "pages of other sites"),
    ("POST", FAULTS, "Origin: http://127.0.0.1:1\r\nContent-Type: application/json\r\n", GONE, 403, "pages of other sites"),
    ("POST", FAULTS, "Sec-Fetch-Site: same-site\r\nContent-Type: application/json\r\n", GONE, 403, "pages of other sites"),
    ("DELETE", FAULTS, "Origin: http://evil.example\r\n", "", 403, "pages of other sites"),
    ("POST", "/api/v1/watches/cut", "Origin: null\r\n", "", 403, "pages of other sites"),
    ("GET", "/api/v1/state", "Origin: http://evil.example\r\n", "", 403, "pages of other sites"),
    ("POST", FAULTS, "Host: evil.example\r\nContent-Type: application/json\r\n", GONE, 403, "use the address of the console"),
    ("GET", "/", "Host: evil.example\r\n", "", 403, "use the address of the console"),
];

/// Mistakes.
#[rustfmt::skip]
const WRONG: [Refused; 10] = [
    ("POST", FAULTS, "", GONE, 415, "the body has to be JSON, with the content type application/json"),
    ("POST", FAULTS, JSON, "{", 400, "EOF while parsing an object"),
    ("POST", FAULTS, JSON, r#"{"action": "nosuch"}"#, 400, "action: unknown variant `nosuch`"),
    ("POST", FAULTS, JSON, r#"{"action": {"refuse": {"code": 200}}}"#, 400, "action.refuse.code: a code from 400 to 599"),
    ("POST", "/api/v1/faults/isolate", JSON, "{}", 400, "missing field `client`"),
    ("DELETE", "/api/v1/faults/7", "", "", 404, "there is no such fault"),
    ("DELETE", "/api/v1/faults/x", "", "", 404, "there is no such fault"),
    ("GET", "/api/v1/state?watch=1", "", "", 400, "the only parameter there is is watch"),
    ("GET", "/api/v1/nosuch", "", "", 404, "there is no such route"),
    ("PUT", FAULTS, "", "", 405, "this route has no such method"),
];

#[tokio::test]
async fn what_is_wrong_is_refused_with_the_reason() {
    let bench = Bench::start(&[]).await;
    for (method, path, headers, body, code, message) in FROM_OTHER_SITES.into_iter().chain(WRONG) {
        let answer = bench.console(method, path, headers, body).await;
        let said = answer.json();
        assert_eq!(said["code"], code, "{method} {path} {headers}: {answer:?}");
        assert_eq!((answer.code, &said["kind"]), (code, &json!("Status")));
        let text = said["message"].as_str().expect("a text");
        assert!(text.contains(message), "{method} {path}: {text}");
    }
    let faults = &bench.state().await["faults"];
    assert_eq!(*faults, json!([]), "nothing was switched on");
    let own = format!("Origin: http://{}\r\n{JSON}", bench.console);
    let answer = bench.console("POST", FAULTS, &own, GONE).await;
    assert_eq!(answer.code, 201, "its own page may: {answer:?}");
}

#[tokio::test]
async fn every_answer_has_the_headers_that_keep_other_sites_out() {
    let bench = Bench::start(&[]).await;
    for path in ["/", "/assets/main.js", "/api/v1/state", "/nosuch"] {
        let answer = bench.console("GET", path, "", "").await;
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self';",
            "x-content-type-options: nosniff",
            "cache-control: no-store",
        ] {
            assert!(answer.head.contains(header), "{path}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_token_is_demanded_if_there_is_one() {
    let folder = Folder::new();
    let file = folder.write("token", "sesame\n");
    let own = Bench::start(&["--console-token-file", file.to_str().unwrap()]).await;
    let of_cluster = Bench::start(&["--token", "sesame"]).await;
    for bench in [own, of_cluster] {
        let right = "Authorization: Bearer sesame\r\n";
        for (path, headers, code) in [
            ("/", "", 200),
            ("/assets/main.js", "", 200),
            ("/api/v1/state", "", 401),
            ("/api/v1/state?watch=true", "", 401),
            ("/api/v1/nosuch", "", 401),
            ("/api/v1/state", "Authorization: Bearer sesam\r\n", 401),
            ("/api/v1/state", "Authorization: Basic sesame\r\n", 401),
            ("/api/v1/state", right, 200),
        ] {
            let answer = bench.console("GET", path, headers, "").await;
            assert_eq!(answer.code, code, "{path} {headers}: {answer:?}");
            assert!(!answer.body.contains("sesame"), "{answer:?}");
        }
        let answer = bench.console("POST", "/api/v1/watches/cut", "", "").await;
        assert_eq!(answer.code, 401);
        assert!(
            answer.head.contains("www-authenticate: bearer"),
            "{answer:?}"
        );
    }
    let open = [
        "cluster",
        "--listen",
        "127.0.0.1:0",
        "--console",
        "0.0.0.0:0",
    ];
    let (code, _, stderr) = run(&open).await;
    let expected = "error: others reach the console on 0.0.0.0:0: give it a token, by --console-token-file or \
        --token-file\n";
    assert_eq!((code, &*stderr), (Some(1), expected));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let (code, _, stderr) = run(&["cluster", "--listen", "127.0.0.1:0", "--console", &taken]).await;
    let expected = format!(
        "error: cannot serve the console on {taken}: Address already in use (os error 98); give another address with \
         --console, or port 0\n"
    );
    assert_eq!((code, stderr), (Some(1), expected));
}
