//! Tokens, exec plugins and certificates, and when they are read again.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, header};
use hyper::body::Incoming;
use kube::Client;
use kube::config::{ExecConfig, ExecInteractiveMode};
use lariat_client::{ConnectError, CountedClient, Http2, from_config, separate};
use lariat_core::describe;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use crate::server::{Answer, Server, Speech, whole};

/// A folder of its own, which is removed with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lariat-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder is ours");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        // As kubelet does: readers see the old file or the new one.
        std::fs::write(self.path("new"), text).expect("the folder is ours");
        std::fs::rename(self.path("new"), self.path(name)).expect("the folder is ours");
    }

    /// Returns how many lines a file has.
    pub(crate) fn lines(&self, name: &str) -> usize {
        std::fs::read_to_string(self.path(name)).map_or(0, |text| text.lines().count())
    }

    /// Makes a plugin that notes each run in a file and prints another.
    pub(crate) fn plugin(&self, script: &str) -> ExecConfig {
        let folder = self.0.display();
        let script =
            format!("#!/bin/sh\ncd {folder}\necho run >> runs\n{script}\ncat credential\n");
        self.write("plugin", &script);
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path("plugin"), executable).expect("the folder is ours");
        exec(&self.path("plugin"))
    }

    pub(crate) fn token(&self, token: &str, more: &str) {
        let credential = format!(
            r#"{{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
                "status": {{"token": "{token}"{more}}}}}"#
        );
        self.write("credential", &credential);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn exec(command: &Path) -> ExecConfig {
    ExecConfig {
        api_version: Some("client.authentication.k8s.io/v1".to_owned()),
        command: Some(command.display().to_string()),
        args: None,
        env: None,
        drop_env: None,
        install_hint: None,
        interactive_mode: Some(ExecInteractiveMode::Never),
        provide_cluster_info: false,
        cluster: None,
        other: Default::default(),
    }
}

/// A server that answers one token, and remembers what it saw.
pub(crate) struct Guarded {
    pub(crate) server: Server,
    pub(crate) accepted: Arc<Mutex<&'static str>>,
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
}

impl Guarded {
    pub(crate) async fn start(token: &'static str) -> Self {
        let accepted = Arc::new(Mutex::new(token));
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let (expected, log) = (Arc::clone(&accepted), Arc::clone(&seen));
        let play = move |request: &Request<Incoming>| -> Answer {
            let token = request.headers().get(header::AUTHORIZATION);
            let token = token.map_or("", |token| token.to_str().expect("it is text"));
            log.lock()
                .push(token.trim_start_matches("Bearer ").to_owned());
            let is_right = token == format!("Bearer {}", *expected.lock());
            answer(is_right)
        };
        let server = Server::start(Speech::Http1, play).await;
        Self {
            server,
            accepted,
            seen,
        }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock())
    }

    pub(crate) async fn client(&self, change: impl FnOnce(&mut kube::config::AuthInfo)) -> Client {
        let mut config = self.server.config();
        change(&mut config.auth_info);
        from_config(config, Http2::Negotiated)
            .await
            .expect("it is valid")
    }
}

pub(crate) fn answer(is_right: bool) -> Answer {
    if is_right {
        whole(200, "{}")
    } else {
        whole(401, "Unauthorized")
    }
}

/// Sends a write, and returns the code of its refusal.
pub(crate) async fn write(client: &Client) -> Result<(), u16> {
    let request = Request::post("/api/v1/namespaces/default/configmaps");
    let request = request.body(b"{}".to_vec()).expect("it is a request");
    match client.request_text(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.code),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_token_that_was_replaced_is_read_when_the_old_one_is_refused() {
    let (folder, guarded) = (Folder::new("token-file"), Guarded::start("first").await);
    folder.write("token", "first");
    let file = folder.path("token").display().to_string();
    let client = guarded.client(|user| user.token_file = Some(file)).await;
    assert_eq!(write(&client).await, Ok(()));
    *guarded.accepted.lock() = "second";
    folder.write("token", "second");
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(guarded.seen(), ["first", "first", "second"]);
    // What is refused for good is sent once.
    *guarded.accepted.lock() = "third";
    assert_eq!(write(&client).await, Err(401));
    assert_eq!(guarded.seen(), ["second"]);
    // A file that is missing takes nothing away.
    *guarded.accepted.lock() = "second";
    std::fs::remove_file(folder.path("token")).unwrap();
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn token_files_are_trimmed() {
    let (folder, guarded) = (Folder::new("token-trim"), Guarded::start("sesame").await);
    folder.write("token", " sesame\r\n\n");
    let file = folder.path("token").display().to_string();
    let client = guarded.client(|user| user.token_file = Some(file)).await;
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(guarded.seen(), ["sesame"]);
}

#[tokio::test]
async fn token_file_that_is_empty_keeps_the_previous_token() {
    let (folder, guarded) = (Folder::new("token-empty"), Guarded::start("first").await);
    folder.write("token", "first");
    let file = folder.path("token").display().to_string();
    let client = guarded.client(|user| user.token_file = Some(file)).await;
    // Truncated, and written a moment later: just then the old token is refused.
    *guarded.accepted.lock() = "second";
    for empty in ["", " \n"] {
        folder.write("token", empty);
        assert_eq!(write(&client).await, Err(401));
    }
    folder.write("token", "second");
    assert_eq!(write(&client).await, Ok(()), "it is read at once");
    // By age, too: no request is anonymous.
    folder.write("token", "");
    pass(120).await;
    assert_eq!(write(&client).await, Ok(()));
    *guarded.accepted.lock() = "third";
    folder.write("token", "third");
    assert_eq!(write(&client).await, Ok(()));
    assert!(!guarded.seen().contains(&String::new()));
}

#[tokio::test]
async fn token_file_takes_precedence_over_the_token() {
    let (folder, guarded) = (Folder::new("token-both"), Guarded::start("new").await);
    folder.write("token", "new\n");
    let both = |user: &mut kube::config::AuthInfo| {
        user.token = Some("old".to_owned().into());
        user.token_file = Some(folder.path("token").display().to_string());
    };
    let client = guarded.client(both).await;
    assert_eq!(write(&client).await, Ok(()));
    // The token beside it is for a file that is not there yet.
    std::fs::remove_file(folder.path("token")).unwrap();
    *guarded.accepted.lock() = "old";
    let client = guarded.client(both).await;
    assert_eq!(write(&client).await, Ok(()));
    *guarded.accepted.lock() = "newer";
    folder.write("token", "newer");
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn tokens_that_a_header_cannot_have_are_an_error() {
    let folder = Folder::new("token-odd");
    for token in ["hunter\n2", "hunter2\u{7f}"] {
        folder.write("token", token);
        let mut config = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
        config.auth_info.token_file = Some(folder.path("token").display().to_string());
        let error = from_config(config, Http2::Negotiated)
            .await
            .map(drop)
            .unwrap_err();
        let text = describe(&error);
        assert!(
            text.contains("characters that a header cannot have"),
            "{text}"
        );
        assert!(!text.contains("hunter"), "{text}");
    }
}

#[tokio::test]
async fn kubeconfig_is_read_again_when_its_token_is_refused() {
    let (folder, guarded) = (Folder::new("token-inline"), Guarded::start("first").await);
    let url = format!("http://127.0.0.1:{}", guarded.server.port);
    let put = |token: &str, url: &str| {
        let config = serde_json::json!({
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "c", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        });
        folder.write("config", &config.to_string());
    };
    put("first", &url);
    let client = lariat_client::from_kubeconfig(folder.path("config"))
        .await
        .unwrap();
    assert_eq!(write(&client).await, Ok(()));
    *guarded.accepted.lock() = "second";
    put("second", &url);
    assert_eq!(write(&client).await, Ok(()));
    // Not with each refusal.
    *guarded.accepted.lock() = "third";
    put("third", &url);
    assert_eq!(write(&client).await, Err(401));
    pass(10).await;
    assert_eq!(write(&client).await, Ok(()));
    // The credentials of another server are not sent to this one, and a file that is being written changes nothing.
    *guarded.accepted.lock() = "fourth";
    put("fourth", "http://127.0.0.1:1");
    pass(10).await;
    assert_eq!(write(&client).await, Err(401));
    folder.write("config", "users: [");
    pass(10).await;
    assert_eq!(write(&client).await, Err(401));
    assert!(!guarded.seen().contains(&"fourth".to_owned()));
    put("fourth", &url);
    pass(10).await;
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn proxy_passwords_are_not_in_errors() {
    for proxy in [
        "socks4://me:hunter2@127.0.0.1:1",
        "http://me:hunter2@127.0.0.1:1",
        "socks5://me:hunter2@127.0.0.1:1",
    ] {
        let mut config =
            kube::Config::new(http::Uri::from_static("https://me:hunter2@127.0.0.1:2"));
        config.proxy_url = Some(proxy.parse().unwrap());
        let text = match from_config(config, Http2::Negotiated).await {
            Err(error) => format!("{error} {error:?} {}", describe(&error)),
            Ok(client) => {
                let request = Request::get("/version").body(Vec::new()).unwrap();
                let error = client.request_text(request).await.unwrap_err();
                format!("{error} {error:?} {}", describe(&error))
            }
        };
        assert!(
            !text.contains("hunter2") && text.contains("127.0.0.1:2"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_plugin_runs_once_for_all_requests_and_again_when_its_token_is_refused() {
    let (folder, guarded) = (Folder::new("plugin"), Guarded::start("first").await);
    folder.token("first", "");
    let plugin = folder.plugin("");
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    assert_eq!(folder.lines("runs"), 1);
    let writes = futures::future::join_all((0..10).map(|_| write(&client))).await;
    assert_eq!(writes, [Ok(()); 10]);
    assert_eq!(folder.lines("runs"), 1);
    *guarded.accepted.lock() = "second";
    folder.token("second", "");
    guarded.seen();
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(guarded.seen(), ["first", "second"]);
    assert_eq!(folder.lines("runs"), 2);
    // Requests of a user without permissions do not run the plugin each time.
    *guarded.accepted.lock() = "third";
    for _ in 0..5 {
        assert_eq!(write(&client).await, Err(401));
    }
    assert_eq!(folder.lines("runs"), 2);
}

#[tokio::test]
async fn plugin_whose_credentials_go_on_being_refused_runs_less_often() {
    let (folder, guarded) = (Folder::new("plugin-refused"), Guarded::start("other").await);
    folder.token("first", "");
    let plugin = folder.plugin("");
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    let mut runs = Vec::new();
    for _ in 0..60 {
        assert_eq!(write(&client).await, Err(401));
        runs.push(folder.lines("runs"));
        pass(5).await;
    }
    let ran = runs.windows(2).enumerate();
    let ran: Vec<_> = ran
        .filter(|(_, pair)| pair[0] < pair[1])
        .map(|(at, _)| (at + 1) * 5)
        .collect();
    // In seconds after the first refusal, at which it ran too.
    assert_eq!(ran, [5, 15, 35, 75, 135, 195, 255]);
    // After a while without refusals it runs at once.
    pass(600).await;
    *guarded.accepted.lock() = "second";
    folder.token("second", "");
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn a_plugin_runs_again_before_its_token_expires() {
    let (folder, guarded) = (Folder::new("expiry"), Guarded::start("first").await);
    folder.token(
        "first",
        r#", "expirationTimestamp": "2020-01-01T00:00:00Z""#,
    );
    let plugin = folder.plugin("");
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    *guarded.accepted.lock() = "second";
    folder.token(
        "second",
        r#", "expirationTimestamp": "2999-01-01T00:00:00Z""#,
    );
    for _ in 0..3 {
        assert_eq!(write(&client).await, Ok(()));
    }
    assert_eq!(guarded.seen(), ["second"; 3]);
    assert_eq!(folder.lines("runs"), 2);
}

/// A plugin that fails while there is a file `fail`.
const FAILS: &str = "trap 'echo end >> ends' EXIT\n[ -e fail ] && exit 1";

/// Sends writes, which succeed, until a plugin has run so often.
async fn until_run(client: &Client, folder: &Folder, times: usize) {
    while folder.lines("ends") < times {
        assert_eq!(write(client).await, Ok(()));
    }
    assert_eq!(folder.lines("runs"), times);
}

/// Lets time pass that no task waits for.
pub(crate) async fn pass(seconds: u64) {
    time::pause();
    time::advance(Duration::from_secs(seconds)).await;
    time::resume();
}

#[tokio::test]
async fn a_plugin_that_fails_before_its_token_expires_does_not_take_it_away() {
    let (folder, guarded) = (Folder::new("renewal"), Guarded::start("first").await);
    let now = jiff::Timestamp::try_from(lariat_core::clock::now()).unwrap();
    let expires = now + jiff::SignedDuration::from_secs(1000);
    folder.token("first", &format!(r#", "expirationTimestamp": "{expires}""#));
    let plugin = folder.plugin(FAILS);
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    folder.write("fail", "");
    pass(950).await;
    // In the background, and not by each request.
    until_run(&client, &folder, 2).await;
    for _ in 0..3 {
        assert_eq!(write(&client).await, Ok(()));
    }
    assert_eq!(folder.lines("ends"), 2);
    // Some seconds later it is run again, and once the token has expired its failure counts.
    pass(10).await;
    until_run(&client, &folder, 3).await;
    pass(60).await;
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let error = describe(&client.request_text(request).await.unwrap_err());
    assert!(error.contains("exit status: 1"), "{error}");
    std::fs::remove_file(folder.path("fail")).unwrap();
    folder.token("first", "");
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn separate_client_shares_connections_while_its_plugin_fails() {
    let (folder, guarded) = (Folder::new("separate"), Guarded::start("first").await);
    folder.token("first", "");
    let plugin = folder.plugin(FAILS);
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    let separate = separate(&CountedClient::new(client));
    folder.write("fail", "");
    for _ in 0..3 {
        assert_eq!(write(&separate).await, Ok(()));
    }
    assert_eq!(folder.lines("runs"), 2, "not by each request");
    std::fs::remove_file(folder.path("fail")).unwrap();
    pass(10).await;
    for _ in 0..2 {
        assert_eq!(write(&separate).await, Ok(()));
    }
    assert_eq!(folder.lines("runs"), 3);
}

#[tokio::test]
async fn separate_client_shares_connections_while_its_plugin_runs() {
    let (folder, guarded) = (Folder::new("separate-slow"), Guarded::start("first").await);
    folder.token("first", "");
    folder.write("go", "");
    let plugin = folder.plugin(WAITS);
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    let separate = separate(&CountedClient::new(client));
    std::fs::remove_file(folder.path("go")).unwrap();
    // The plugin waits for these requests, so none of them can have waited for the plugin.
    for _ in 0..2 {
        assert_eq!(write(&separate).await, Ok(()));
    }
    folder.write("go", "");
    assert_eq!(write(&separate).await, Ok(()));
    assert_eq!(folder.lines("runs"), 2);
}

#[tokio::test]
async fn requests_refused_while_a_plugin_runs_wait_for_what_it_gives() {
    let (folder, guarded) = (Folder::new("shared-run"), Guarded::start("first").await);
    folder.token("first", "");
    folder.write("go", "");
    let plugin = folder.plugin(WAITS);
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    *guarded.accepted.lock() = "second";
    folder.token("second", "");
    std::fs::remove_file(folder.path("go")).unwrap();
    guarded.seen();
    let writes = futures::future::join_all((0..5).map(|_| write(&client)));
    let goes = async {
        // All of them are refused before the plugin ends, whichever began it.
        while folder.lines("runs") < 2 || guarded.seen.lock().len() < 5 {
            tokio::task::yield_now().await;
        }
        folder.write("go", "");
    };
    let (writes, ()) = tokio::join!(writes, goes);
    assert_eq!(writes, [Ok(()); 5]);
    assert_eq!(folder.lines("runs"), 2);
}

#[tokio::test]
async fn requests_use_the_old_token_while_a_plugin_renews_it() {
    let (folder, guarded) = (Folder::new("slow-renewal"), Guarded::start("first").await);
    let now = jiff::Timestamp::try_from(lariat_core::clock::now()).unwrap();
    let expires = now + jiff::SignedDuration::from_secs(1000);
    folder.token("first", &format!(r#", "expirationTimestamp": "{expires}""#));
    folder.write("go", "");
    let plugin = folder.plugin(WAITS);
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    std::fs::remove_file(folder.path("go")).unwrap();
    pass(950).await;
    // The plugin waits for these requests, so none of them can have waited for the plugin.
    while folder.lines("runs") < 2 {
        assert_eq!(write(&client).await, Ok(()));
    }
    for _ in 0..5 {
        assert_eq!(write(&client).await, Ok(()));
    }
    // A request that is refused meanwhile waits for that run, and starts no other.
    folder.token("second", "");
    *guarded.accepted.lock() = "second";
    folder.write("go", "");
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(folder.lines("runs"), 2);
}

#[tokio::test]
async fn plugin_that_is_running_is_not_started_again_when_requests_give_up() {
    let (folder, guarded) = (Folder::new("given-up"), Guarded::start("first").await);
    folder.token(
        "first",
        r#", "expirationTimestamp": "2020-01-01T00:00:00Z""#,
    );
    folder.write("go", "");
    let plugin = folder.plugin(WAITS);
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    std::fs::remove_file(folder.path("go")).unwrap();
    folder.token("first", "");
    for _ in 0..3 {
        let given_up = time::timeout(Duration::from_millis(300), write(&client)).await;
        assert!(given_up.is_err(), "the plugin waits");
    }
    folder.write("go", "");
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(folder.lines("runs"), 2, "one at the beginning, and one");
}

#[tokio::test]
async fn plugin_ends_although_its_child_keeps_the_output_open() {
    let (folder, guarded) = (Folder::new("plugin-child"), Guarded::start("first").await);
    folder.token("first", "");
    // Without the test's own standard error, which the child would keep open too.
    let plugin = folder.plugin("sleep 60 2>/dev/null & echo $! >> pid");
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    for _ in 0..5 {
        let plugin = plugin.clone();
        let client = guarded.client(|user| user.exec = Some(plugin)).await;
        assert_eq!(write(&client).await, Ok(()));
    }
    // Of the blocking threads, which are used again; a reader of each run would be a thread more.
    assert!(threads() < before + 5, "no run leaves a thread");
    let pids = std::fs::read_to_string(folder.path("pid")).unwrap();
    for pid in pids.split_whitespace() {
        std::process::Command::new("kill")
            .arg(pid)
            .status()
            .unwrap();
    }
}

/// A plugin that waits for a file `go`, and gives up at some time.
const WAITS: &str =
    "for i in $(seq 200); do [ -e go ] && break; sleep 0.05; done; [ -e go ] || exit 1";

#[tokio::test]
async fn a_plugin_does_not_block_the_runtime() {
    let (folder, guarded) = (Folder::new("slow-plugin"), Guarded::start("first").await);
    folder.token("first", "");
    // It waits for what another task of the same thread does.
    let plugin = folder.plugin(WAITS);
    let goes = async {
        while folder.lines("runs") == 0 {
            tokio::task::yield_now().await;
        }
        folder.write("go", "");
    };
    let (client, ()) = tokio::join!(guarded.client(|user| user.exec = Some(plugin)), goes);
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn a_plugin_that_does_not_end_is_killed() {
    let folder = Folder::new("hanging-plugin");
    // The second one has closed its output, as if it had printed everything.
    for hangs in ["exec sleep 3600", "exec sleep 3600 > /dev/null"] {
        let mut config = kube::Config::new(http::Uri::from_static("https://127.0.0.1:1"));
        config.auth_info.exec = Some(folder.plugin(&format!("echo $$ > pid\n{hangs}")));
        let passes = async {
            while folder.lines("pid") == 0 {
                tokio::task::yield_now().await;
            }
            pass(60).await;
        };
        let (client, ()) = tokio::join!(from_config(config, Http2::Negotiated), passes);
        let text = client.err().expect("it gives nothing").to_string();
        assert!(text.contains("did not end within 60s"), "{text}");
        let pid = std::fs::read_to_string(folder.path("pid")).unwrap();
        std::fs::remove_file(folder.path("pid")).unwrap();
        let process = Path::new("/proc").join(pid.trim());
        assert!(!process.exists(), "it was waited for");
    }
}

#[tokio::test]
async fn a_plugin_is_named_by_its_command_when_it_fails() {
    let (failing, talking) = (Folder::new("failing-plugin"), Folder::new("talking-plugin"));
    let missing = failing.path("no-such-plugin");
    let mut hinted = exec(&missing);
    hinted.install_hint = Some("install it by hand".to_owned());
    for (plugin, command, expected) in [
        (
            exec(&missing),
            "no-such-plugin",
            "is it installed, and in the PATH",
        ),
        (hinted, "no-such-plugin", "install it by hand"),
        (failing.plugin("exit 3"), "/plugin\"", "exit status: 3"),
        (
            talking.plugin("echo nothing; exit 0"),
            "/plugin\"",
            "no usable ExecCredential",
        ),
    ] {
        let mut config = kube::Config::new(http::Uri::from_static("https://127.0.0.1:1"));
        config.auth_info.exec = Some(plugin);
        let error = from_config(config, Http2::Negotiated).await.err();
        let text = error.expect("it gives nothing").to_string();
        assert!(text.contains("https://127.0.0.1:1"), "{text}");
        assert!(text.contains(command) && text.contains(expected), "{text}");
    }
}

/// Its arguments and its output are secrets.
#[tokio::test]
async fn error_of_an_auth_provider_has_nothing_of_its_command() {
    let folder = Folder::new("auth-provider");
    let plugin = folder.plugin("echo hunter2; exit 1");
    let mut config = kube::Config::new(http::Uri::from_static("https://127.0.0.1:1"));
    let provider = json!({"name": "gcp", "config": {
        "cmd-path": plugin.command, "cmd-args": "--secret hunter3", "token-key": "{.token}",
    }});
    let provider = serde_json::from_value(provider).expect("it is one");
    config.auth_info.auth_provider = Some(provider);
    let error = from_config(config, Http2::Negotiated).await.err();
    let text = describe(&error.expect("it gives nothing"));
    assert!(!text.contains("hunter"), "{text}");
    assert!(text.contains("use an exec plugin"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_missing_is_named() {
    let mut config = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    config.auth_info.token_file = Some("/no/such/token".to_owned());
    let error = from_config(config, Http2::Negotiated).await.err();
    let error = error.expect("there is no token");
    assert!(matches!(error, ConnectError::Client { .. }));
    assert!(error.to_string().contains("/no/such/token"), "{error}");
}

/// It expires while the program runs.
#[tokio::test]
async fn failed_renewal_of_an_auth_provider_hides_its_command() {
    let (folder, guarded) = (Folder::new("auth-renewed"), Guarded::start("sesame").await);
    let plugin = folder.plugin("[ -e again ] && { echo hunter2; exit 1; }; touch again");
    let now = jiff::Timestamp::try_from(lariat_core::clock::now()).unwrap();
    let soon = now + jiff::SignedDuration::from_secs(30);
    let credential = json!({"token": "sesame", "expiry": soon.to_string()});
    folder.write("credential", &credential.to_string());
    let provider = json!({"name": "gcp", "config": {
        "cmd-path": plugin.command, "cmd-args": "--secret hunter3",
        "token-key": "{.token}", "expiry-key": "{.expiry}",
    }});
    let provider = serde_json::from_value(provider).expect("it is one");
    let client = guarded
        .client(|user| user.auth_provider = Some(provider))
        .await;
    let request = Request::get("/version")
        .body(Vec::new())
        .expect("a request");
    let error = client
        .request_text(request)
        .await
        .expect_err("it gives nothing");
    let text = format!("{} {error:?}", describe(&error));
    assert!(!text.contains("hunter"), "{text}");
    assert!(text.contains("use an exec plugin"), "{text}");
}

#[tokio::test]
async fn refusal_by_a_program_behind_the_server_is_no_reason_to_send_again() {
    let (folder, guarded) = (Folder::new("passed-on"), Guarded::start("never").await);
    folder.token("first", "");
    let plugin = folder.plugin("");
    let client = guarded.client(|user| user.exec = Some(plugin)).await;
    let request = |path: &str| {
        let uri = format!("/api/v1/namespaces/default/{path}");
        Request::post(uri).body(b"{}".to_vec()).expect("a request")
    };
    folder.token("second", "");
    let refused = client
        .request_text(request("services/shop/proxy/orders"))
        .await;
    assert!(refused.is_err());
    assert_eq!(guarded.seen(), ["first"]);
    // It may have been the server's own refusal, so the next request has other credentials.
    *guarded.accepted.lock() = "second";
    assert!(
        client
            .request_text(request("services/shop/proxy/orders"))
            .await
            .is_ok()
    );
    assert_eq!(guarded.seen(), ["second"]);
}
