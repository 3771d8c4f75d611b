//! A cluster that serves: its options, its seeds, and its end.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use tokio::io::AsyncReadExt;

use crate::program::{Folder, Served, lariat, run};

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
            format!(
                "error: cannot listen on {taken}: Address already in use (os error 98); give another address with \
                 --listen, or port 0\n"
            ),
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
                "error: {orphan}, document 1, Widget a: demo.dev/v1 Widget is not served; is its CRD missing?\n"
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
async fn requests_without_the_token_are_refused() {
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
