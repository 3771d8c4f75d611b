//! The command line, as a user runs it.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long something may take that must happen.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("cli-{}", fastrand::u64(..));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir(&path).expect("the folder is new");
        Self(path)
    }

    /// Returns what is in it.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the folder is there");
        let name =
            |entry: std::io::Result<fs::DirEntry>| entry.expect("it can be read").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("the file can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn lariat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lariat"));
    command.args(arguments).kill_on_drop(true);
    // What the tests are called with is not for those they call.
    command.env_remove("LARIAT_TOKEN");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the command line to its end.
async fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let ended = timeout(TIMEOUT, lariat(arguments).output()).await;
    let Output {
        status,
        stdout,
        stderr,
    } = ended.expect("it ends by itself").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// A cluster that serves.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    async fn start(arguments: &[&str]) -> Self {
        let always = ["cluster", "--listen", "127.0.0.1:0"];
        Self::of(&mut lariat(&[&always, arguments].concat())).await
    }

    async fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("it runs");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        let read = timeout(TIMEOUT, BufReader::new(stdout).read_line(&mut line)).await;
        read.expect("it says something").expect("it can be read");
        let Some(url) = line.strip_prefix("ready ") else {
            panic!(
                "{line:?} is not that it is ready: {}",
                stderr(&mut child).await
            );
        };
        Self {
            url: url.trim_end().to_owned(),
            child,
        }
    }

    /// Asks for a path over a connection of its own.
    async fn get(&self, path: &str) -> String {
        self.get_as(path, "").await
    }

    /// Asks with headers, each with the end of its line.
    async fn get_as(&self, path: &str, headers: &str) -> String {
        let mut answer = String::new();
        let mut stream = self.ask_as(path, headers).await;
        let read = timeout(TIMEOUT, stream.read_to_string(&mut answer)).await;
        read.expect("it ends").expect("it answers");
        answer
    }

    /// Watches a path until a text comes.
    async fn watch(&self, path: &str, text: &str) {
        let mut stream = self.ask(path).await;
        let mut answer = Vec::new();
        while !String::from_utf8_lossy(&answer).contains(text) {
            let read = timeout(TIMEOUT, stream.read_buf(&mut answer)).await;
            let read = read.expect("it comes").expect("it can be read");
            assert_ne!(read, 0, "the watch goes on");
        }
    }

    async fn ask(&self, path: &str) -> TcpStream {
        self.ask_as(path, "").await
    }

    async fn ask_as(&self, path: &str, headers: &str) -> TcpStream {
        let address = self.url.strip_prefix("http://").expect("it is HTTP");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n");
        let sent = stream.write_all(request.as_bytes()).await;
        sent.expect("it reads");
        stream
    }

    async fn signal(&self, signal: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args(["-s", signal, &id])
            .status()
            .await;
        assert!(sent.expect("kill runs").success());
    }

    async fn ended(mut self) -> (Option<i32>, String) {
        let stderr = stderr(&mut self.child).await;
        let ended = timeout(TIMEOUT, self.child.wait()).await;
        (ended.expect("it ends").expect("it ran").code(), stderr)
    }
}

async fn stderr(child: &mut Child) -> String {
    let mut text = String::new();
    let mut pipe = child.stderr.take().expect("it is piped");
    let read = timeout(TIMEOUT, pipe.read_to_string(&mut text)).await;
    read.expect("it ends").expect("it can be read");
    text
}

#[tokio::test]
async fn a_cluster_serves_until_it_is_asked_to_end() {
    for signal in ["INT", "TERM"] {
        let folder = Folder::new();
        let path = folder.0.join("kubeconfig");
        let path = path.to_str().unwrap();
        let served = Served::start(&["--kubeconfig", path]).await;
        assert!(served.get("/readyz").await.ends_with("\r\n\r\nok"));
        let kubeconfig = fs::read_to_string(path).unwrap();
        assert!(kubeconfig.contains(&served.url), "{kubeconfig}");
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it is for its owner alone");
        assert_eq!(
            folder.names(),
            ["kubeconfig"],
            "no draft and no lock is left"
        );
        served.signal(signal).await;
        let (code, stderr) = served.ended().await;
        assert_eq!(code, Some(0), "{stderr}");
        assert!(
            stderr.contains(&format!(
                "try: kubectl --kubeconfig {path} get namespaces\n"
            )),
            "{stderr}"
        );
        let kubeconfig = fs::read_to_string(path).unwrap();
        assert!(
            !kubeconfig.contains("lariat"),
            "its entries end with it: {kubeconfig}"
        );
        assert_eq!(folder.names(), ["kubeconfig"]);
    }
}

const PRODUCTION: &str = "\
apiVersion: v1
kind: Config
current-context: production # mind the gap
clusters:
- name: production
  cluster: {server: \"https://production.example.com\"}
contexts:
- name: production
  context: {cluster: production, user: admin, namespace: shop}
users:
- name: admin
  user:
    token: \"0123\"
    exec: {apiVersion: client.authentication.k8s.io/v1, command: login, args: [\"yes\", \"1e3\", \"a: b\"]}
";

#[tokio::test]
async fn the_entries_of_others_stay_in_a_kubeconfig() {
    let folder = Folder::new();
    let file = folder.write("config", PRODUCTION);
    let link = folder.0.join("link");
    std::os::unix::fs::symlink("config", &link).unwrap();
    let served = Served::start(&["--kubeconfig", link.to_str().unwrap()]).await;
    let merged = fs::read_to_string(&file).unwrap();
    for kept in [
        "current-context: lariat",
        "server: https://production.example.com",
        "namespace: shop",
        "token: \"0123\"",
        "- \"yes\"",
        "- \"1e3\"",
        "- \"a: b\"",
        &served.url,
    ] {
        assert!(merged.contains(kept), "no {kept} in {merged}");
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    served.signal("TERM").await;
    let (code, stderr) = served.ended().await;
    assert_eq!(code, Some(0), "{stderr}");
    let left = fs::read_to_string(&file).unwrap();
    assert!(!left.contains("lariat") && left.contains("0123"), "{left}");
    // The user chooses what to use next: nothing reaches production by itself.
    assert!(left.contains("current-context: \"\""), "{left}");
    assert_eq!(folder.names(), ["config", "link"]);
}

#[tokio::test]
async fn a_file_that_is_no_kubeconfig_of_ours_is_left_as_it_is() {
    let folder = Folder::new();
    let foreign = "clusters:\n- name: lariat\n  cluster: {server: \"https://mine\"}\n";
    for (content, expected) in [
        (
            "token: hunter2\nclusters: [oops\n",
            "cannot be read as YAML, see line ",
        ),
        (
            "Dear diary: hunter2: hunter2",
            "cannot be read as YAML, see line 1; it stays as it is",
        ),
        ("- hunter2", "is no kubeconfig; it stays as it is"),
        (
            "clusters: hunter2",
            "has clusters that are no list; it stays as it is",
        ),
        (
            foreign,
            "has an entry lariat among its clusters that is not of this program",
        ),
    ] {
        let file = folder.write("config", content);
        let path = file.to_str().unwrap();
        let (code, stdout, stderr) =
            run(&["cluster", "--listen", "127.0.0.1:0", "--kubeconfig", path]).await;
        assert_eq!((code, &*stdout), (Some(1), ""), "{stderr}");
        let begin = format!("error: the kubeconfig {path} {expected}");
        assert!(stderr.starts_with(&begin), "{stderr}");
        assert!(!stderr.contains("hunter2"), "{stderr}");
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
        assert_eq!(folder.names(), ["config"]);
    }
}

#[tokio::test]
async fn a_later_cluster_keeps_its_place_in_a_kubeconfig() {
    let folder = Folder::new();
    let path = folder.0.join("config");
    let options = ["--kubeconfig", path.to_str().unwrap()];
    let first = Served::start(&options).await;
    let second = Served::start(&options).await;
    first.signal("TERM").await;
    assert_eq!(first.ended().await.0, Some(0));
    let kubeconfig = fs::read_to_string(&path).unwrap();
    assert!(kubeconfig.contains(&second.url), "{kubeconfig}");
    assert_eq!(kubeconfig.matches("server:").count(), 1, "{kubeconfig}");
}

#[tokio::test]
async fn an_open_watch_does_not_keep_it() {
    let served = Served::start(&[]).await;
    let mut stream = served.ask("/api/v1/pods?watch=true").await;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    served.signal("INT").await;
    assert_eq!(served.ended().await.0, Some(0));
}

#[tokio::test]
async fn seeds_are_created_in_an_order_that_works() {
    let folder = Folder::new();
    let objects = "apiVersion: demo.dev/v1\nkind: Widget\nmetadata: {name: a, namespace: shop}\nspec: {size: 1}\n---\n\
        apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n\
        apiVersion: v1\nkind: ConfigMap\nmetadata: {name: free}\ndata: {a: '1'}\n";
    folder.write("a.yaml", objects);
    folder.write("notes.txt", "this is not read: [");
    let definition = r#"{"apiVersion": "v1", "kind": "List", "items": [{
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.demo.dev"},
        "spec": {
            "group": "demo.dev", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}]}"#;
    folder.write("b.json", definition);
    let again = folder.write("again.yml", objects);
    let (folder_path, again) = (folder.0.to_str().unwrap(), again.to_str().unwrap());
    let served = Served::start(&[
        "--seed",
        folder_path,
        "--seed",
        again,
        "--load",
        "pods=16,nodes=2",
    ])
    .await;
    for path in [
        "/apis/demo.dev/v1/namespaces/shop/widgets/a",
        "/api/v1/namespaces/default/configmaps/free",
    ] {
        assert!(served.get(path).await.starts_with("HTTP/1.1 200"), "{path}");
    }
    let nodes = served.get("/api/v1/nodes").await;
    assert_eq!(nodes.matches("\"machineID\"").count(), 2);
}

#[tokio::test]
async fn what_cannot_be_is_said_in_one_line() {
    let folder = Folder::new();
    let orphan = folder.write(
        "orphan.yaml",
        "---\napiVersion: demo.dev/v1\nkind: Widget\nmetadata: {name: a}\n",
    );
    let lost = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: nowhere}\nspec: {containers: []}\n";
    let lost = folder.write("lost.yaml", lost);
    let (orphan, lost) = (orphan.to_str().unwrap(), lost.to_str().unwrap());
    let kubeconfig = folder.0.join("no/kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (arguments, code, expected) in [
        (
            &["cluster", "--listen", &taken][..],
            1,
            format!("error: cannot serve on {taken}: Address already in use (os error 98)\n"),
        ),
        (
            &["cluster", "--seed", "/nonexistent"],
            1,
            "error: cannot read /nonexistent: No such file or directory (os error 2)\n".to_owned(),
        ),
        (
            &["cluster", "--listen", "127.0.0.1:0", "--seed", orphan],
            1,
            format!(
                "error: {orphan}, document 1, Widget a: demo.dev/v1 Widget is not served; is its definition missing?\n"
            ),
        ),
        (
            &["cluster", "--listen", "127.0.0.1:0", "--seed", lost],
            1,
            format!("error: {lost}, document 1, Pod web: namespaces \"nowhere\" not found\n"),
        ),
        (
            &[
                "cluster",
                "--listen",
                "127.0.0.1:0",
                "--kubeconfig",
                kubeconfig,
            ],
            1,
            format!(
                "error: cannot write the kubeconfig {kubeconfig}: No such file or directory (os error 2)\n"
            ),
        ),
    ] {
        assert_eq!(run(arguments).await, (Some(code), String::new(), expected));
    }
}

#[tokio::test]
async fn a_data_file_outlives_the_process() {
    let folder = Folder::new();
    let data = folder.0.join("data");
    let data = data.to_str().unwrap();
    let nodes = "/api/v1/nodes?labelSelector=kubernetes.io/os";
    let first = Served::start(&["--data", data, "--load", "nodes=2"]).await;
    let stored = first.get(nodes).await;
    first.signal("TERM").await;
    assert_eq!(first.ended().await.0, Some(0));
    let second = Served::start(&["--data", data, "--load", "nodes=3"]).await;
    let restored = second.get(nodes).await;
    assert_eq!(stored.matches("\"bootID\"").count(), 2);
    assert_eq!(restored.matches("\"bootID\"").count(), 3);
}

#[tokio::test]
async fn the_switches_reach_the_cluster() {
    let switched = Served::start(&["--admin", "--simulate-workloads"]).await;
    assert!(
        switched
            .get("/lariat/status")
            .await
            .starts_with("HTTP/1.1 200")
    );
    switched.watch("/api/v1/nodes?watch=true", "node-1").await;
    let plain = Served::start(&[]).await;
    assert!(
        plain
            .get("/lariat/status")
            .await
            .starts_with("HTTP/1.1 404")
    );
    assert!(
        plain
            .get("/api/v1/nodes/node-1")
            .await
            .starts_with("HTTP/1.1 404")
    );
}

#[tokio::test]
async fn without_the_token_nobody_gets_in() {
    let folder = Folder::new();
    let path = folder.0.join("kubeconfig");
    let served =
        Served::start(&["--token", "sesame", "--kubeconfig", path.to_str().unwrap()]).await;
    assert!(served.get("/api/v1/pods").await.starts_with("HTTP/1.1 403"));
    let kubeconfig = fs::read_to_string(&path).unwrap();
    assert!(kubeconfig.contains("token: sesame"), "{kubeconfig}");
}

#[tokio::test]
async fn a_token_need_not_be_in_the_list_of_processes() {
    let folder = Folder::new();
    let file = folder.write("token", "sesame\n");
    let in_file = Served::start(&["--token-file", file.to_str().unwrap()]).await;
    assert!(
        in_file
            .get("/api/v1/pods")
            .await
            .starts_with("HTTP/1.1 403")
    );
    let mut command = lariat(&["cluster", "--listen", "127.0.0.1:0"]);
    let in_environment = Served::of(command.env("LARIAT_TOKEN", "sesame")).await;
    for served in [in_file, in_environment] {
        assert!(served.get("/api/v1/pods").await.starts_with("HTTP/1.1 403"));
        let known = served
            .get_as("/api/v1/pods", "Authorization: Bearer sesame\r\n")
            .await;
        assert!(known.starts_with("HTTP/1.1 200"), "{known}");
    }
    let bad = folder.write("bad", "open sesame");
    let (code, _, stderr) = run(&["cluster", "--token-file", bad.to_str().unwrap()]).await;
    let expected = "error: the token has characters that no header can carry\n";
    assert_eq!((code, &*stderr), (Some(1), expected));
}

/// Lists the files of a folder and of those below it.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[tokio::test]
async fn a_project_says_nothing_of_the_machine_it_was_made_on() {
    let folder = Folder::new();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    for (name, options) in [
        ("shop-operator", &[][..]),
        ("fox", &["--lariat", checkout.to_str().unwrap()]),
        ("bird", &["--lariat", "https://example.com/lariat.git#v1"]),
    ] {
        let project = folder.0.join(name);
        let arguments = ["new", name, "--path", project.to_str().unwrap()];
        let (code, _, stderr) = run(&[&arguments[..], options].concat()).await;
        assert_eq!(code, Some(0), "{stderr}");
        let mut written = Vec::new();
        files(&project, &mut written);
        assert!(written.len() > 10, "{written:?}");
        for file in written {
            let text = fs::read_to_string(&file).unwrap();
            for absolute in [&checkout, &folder.0.canonicalize().unwrap()] {
                let absolute = absolute.to_str().unwrap();
                // The way from the project may well end with it.
                let text = text.replace(&format!("..{absolute}"), "");
                assert!(!text.contains(absolute), "{}: {text}", file.display());
            }
        }
    }
    let taken = run(&["new", "shop", "--kind", "Pod", "--path", "nowhere"]).await;
    let expected = "error: invalid value 'Pod' for '--kind <KIND>': it is a kind of Kubernetes itself; choose another\n";
    assert_eq!((taken.0, &*taken.1), (Some(2), ""));
    assert!(taken.2.starts_with(expected), "{}", taken.2);
}

#[tokio::test]
async fn help_and_version_go_to_stdout() {
    for (arguments, expected) in [
        (&["--help"][..], "Usage: lariat <COMMAND>"),
        (&["help"], "Usage: lariat <COMMAND>"),
        (&["cluster", "--help"], "Usage: lariat cluster [OPTIONS]"),
        (&["help", "query"], "Usage: lariat query [OPTIONS] <KIND>"),
        (&["--version"], "lariat 0."),
        (&["completions", "bash"], "complete -F _lariat"),
    ] {
        let (code, stdout, stderr) = run(arguments).await;
        assert_eq!((code, &*stderr), (Some(0), ""));
        assert!(stdout.contains(expected), "{stdout}");
    }
}

#[tokio::test]
async fn a_mistyped_option_is_suggested() {
    let (code, stdout, stderr) = run(&["cluster", "--kubeconfg", "k"]).await;
    assert_eq!((code, &*stdout), (Some(2), ""));
    for expected in [
        "error: unexpected argument '--kubeconfg' found\n",
        "tip: a similar argument exists: '--kubeconfig'\n",
        "Usage: lariat cluster ",
    ] {
        assert!(stderr.contains(expected), "{stderr}");
    }
}
