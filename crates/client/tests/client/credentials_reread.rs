//! Kubeconfigs that change while a program runs: the context of the start stays.

use serde_json::{Value, json};

use crate::credentials::{Folder, Guarded, pass, write};
use crate::proxies::Proxy;

/// A kubeconfig with the contexts `a` and `b`, whose users have these tokens.
struct Contexts {
    current: &'static str,
    /// The members of both clusters.
    cluster: Value,
    tokens: [&'static str; 2],
    /// The name of the first context.
    first: &'static str,
}

impl Contexts {
    fn new(guarded: &Guarded) -> Self {
        Self {
            current: "a",
            cluster: json!({"server": format!("http://127.0.0.1:{}", guarded.server.port)}),
            tokens: ["first", "of-b"],
            first: "a",
        }
    }

    fn write(&self, folder: &Folder) {
        let names = [self.first, "b"];
        let contexts =
            names.map(|name| json!({"name": name, "context": {"cluster": "k", "user": name}}));
        let users = [0, 1].map(|at| json!({"name": names[at], "user": {"token": self.tokens[at]}}));
        let text = json!({
            "current-context": self.current, "contexts": contexts, "users": users,
            "clusters": [{"name": "k", "cluster": self.cluster}],
        });
        folder.write("config", &text.to_string());
    }

    async fn client(&self, folder: &Folder) -> kube::Client {
        self.write(folder);
        let client = lariat_client::from_kubeconfig(folder.path("config")).await;
        client.expect("it is valid")
    }
}

#[tokio::test]
async fn reread_keeps_the_context_of_the_start() {
    let (folder, guarded) = (Folder::new("reread-context"), Guarded::start("first").await);
    let mut contexts = Contexts::new(&guarded);
    let client = contexts.client(&folder).await;
    assert_eq!(write(&client).await, Ok(()));
    // As `kubectl config use-context b` does, while the token of `a` is replaced.
    contexts.current = "b";
    contexts.tokens[0] = "second";
    contexts.write(&folder);
    *guarded.accepted.lock() = "second";
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(guarded.seen(), ["first", "first", "second"]);
}

#[tokio::test]
async fn reread_without_the_context_of_the_start_keeps_the_credentials() {
    let (folder, guarded) = (Folder::new("reread-gone"), Guarded::start("first").await);
    let mut contexts = Contexts::new(&guarded);
    let client = contexts.client(&folder).await;
    (contexts.first, contexts.current) = ("renamed", "b");
    contexts.write(&folder);
    *guarded.accepted.lock() = "of-b";
    assert_eq!(write(&client).await, Err(401));
    assert_eq!(guarded.seen(), ["first"], "no other user's token is sent");
    // Once the context is there again, it is used.
    (contexts.first, contexts.tokens[0]) = ("a", "second");
    contexts.write(&folder);
    *guarded.accepted.lock() = "second";
    pass(10).await;
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn kubeconfig_with_another_server_keeps_credentials() {
    let (folder, guarded) = (Folder::new("reread-server"), Guarded::start("first").await);
    let mut contexts = Contexts::new(&guarded);
    let client = contexts.client(&folder).await;
    let cluster = contexts.cluster.clone();
    *guarded.accepted.lock() = "second";
    contexts.tokens[0] = "second";
    // The same address behind a proxy or another name may be another cluster, and so may another address.
    for (member, value) in [
        ("proxy-url", "http://127.0.0.1:1"),
        ("tls-server-name", "other.example.com"),
        ("server", "http://127.0.0.1:1"),
    ] {
        contexts.cluster[member] = value.into();
        contexts.write(&folder);
        pass(10).await;
        assert_eq!(write(&client).await, Err(401), "{member}");
        contexts.cluster = cluster.clone();
    }
    assert_eq!(guarded.seen(), ["first"; 3]);
    contexts.write(&folder);
    pass(10).await;
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn reread_takes_a_new_password_of_the_proxy() {
    let (folder, guarded) = (Folder::new("reread-proxy"), Guarded::start("first").await);
    let mut contexts = Contexts::new(&guarded);
    let proxy = Proxy::http(guarded.server.port);
    let url = |password: &str| format!("http://me:{password}@127.0.0.1:{}", proxy.server.port);
    contexts.cluster["proxy-url"] = url("old").into();
    let client = contexts.client(&folder).await;
    assert_eq!(write(&client).await, Ok(()));
    contexts.cluster["proxy-url"] = url("new").into();
    contexts.tokens[0] = "second";
    contexts.write(&folder);
    *guarded.accepted.lock() = "second";
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(*proxy.seen.lock(), ["me:old", "me:new"]);
}
