//! The kubeconfig that a cluster writes, and takes back.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::program::{Folder, Served, run};

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
