//! Revisions of users who see a part of a kind.

use std::time::Duration;

use hyper::HeaderMap;
use lariat_sql::http::SqlService;
use lariat_sql::{Access, User};
use lariat_testing::http::Client;
use serde_json::json;

use crate::bench::{Bench, MAPS};

struct Users {
    bench: Bench,
    /// Sees the namespace `default`.
    jane: Client,
    admin: Client,
}

impl Users {
    async fn new() -> Self {
        let mut bench = Bench::new().await;
        bench.fill();
        let serve = |it: SqlService| {
            it.heartbeat(Duration::from_millis(50))
                .authenticate_with(|headers: &HeaderMap| {
                    let user = headers.get("user").and_then(|user| user.to_str().ok());
                    let user = User::new(user.unwrap_or_default());
                    async move { Ok(user) }
                })
                .visible(|user, _| async move {
                    let is_admin = user.name() == "admin";
                    let some = Access::of_namespaces(["default"]);
                    Ok(if is_admin { Access::everything() } else { some })
                })
        };
        let client = bench.serve(serve).await;
        Self {
            bench,
            jane: client.with("user", "jane"),
            admin: client.with("user", "admin"),
        }
    }

    /// Changes objects that Jane does not see, and waits until the cache has them.
    async fn change_others(&self) {
        let mut version = String::new();
        for number in 0..7 {
            let name = format!("hidden-{}-{number}", fastrand::u32(..));
            version = self.bench.create_in("kube-system", &name, json!({})).await;
        }
        let seen = self.admin.get(&format!("{MAPS}?revision={version}")).await;
        assert_eq!(seen.status, 200);
    }

    async fn revision(&self, user: &Client) -> String {
        let list = user.get(MAPS).await.json();
        list["revision"].as_str().expect("a revision").to_owned()
    }
}

/// Returns the part of a revision that can be read.
fn version(revision: &str) -> &str {
    let (version, sealed) = revision.split_once("-s").expect("it is encrypted");
    assert_eq!(sealed.len(), 64, "{revision}");
    version
}

#[tokio::test]
async fn changes_of_hidden_objects_show_in_no_revision_and_no_tag() {
    let users = Users::new().await;
    let created = users.bench.create("a", json!({"color": "red"})).await;
    let url = format!("{MAPS}?limit=1");
    users.jane.get(&format!("{MAPS}?revision={created}")).await;
    let (before, of_admin) = (
        users.revision(&users.jane).await,
        users.revision(&users.admin).await,
    );
    assert_eq!(
        version(&before),
        created,
        "the highest of the objects she sees"
    );
    let list = users.jane.get(&url).await;
    assert_eq!(list.header("etag"), "");
    let next = list.json()["continue"].clone();

    users.change_others().await;
    let after = users.revision(&users.jane).await;
    assert_eq!(version(&before), version(&after));
    assert_ne!(before, after, "it is encrypted anew each time");
    assert_ne!(of_admin, users.revision(&users.admin).await);
    // A cursor has no more.
    assert_eq!(users.jane.get(&url).await.json()["continue"], next);
    let behind = users.jane.get(&format!("{MAPS}?revision=999999")).await;
    assert_eq!(
        behind.refused(504),
        "v1 ConfigMap did not reach 999999 in time"
    );

    // A change of a visible object shows.
    let changed = users
        .bench
        .patch("a", json!({"data": {"color": "blue"}}))
        .await;
    users.jane.get(&format!("{MAPS}?revision={changed}")).await;
    assert_eq!(version(&users.revision(&users.jane).await), changed);
}

#[tokio::test]
async fn a_watch_resumes_from_encrypted_revisions_and_shows_no_other() {
    let users = Users::new().await;
    let created = users.bench.create("a", json!({"color": "red"})).await;
    users.jane.get(&format!("{MAPS}?revision={created}")).await;
    let since = users.revision(&users.jane).await;
    users.change_others().await;
    users.bench.create("b", json!({"color": "red"})).await;
    let url = format!("{MAPS}?watch&filter=data.color&revision={since}");
    let mut watch = users.jane.watch(&url).await;
    assert_eq!(watch.status, 200);
    assert_eq!(watch.change().await, "ADDED b");
    // Heartbeats after changes of others.
    users.change_others().await;
    let of_event = version(&watch.id).to_owned();
    for _ in 0..3 {
        let beat = watch.block().await.expect("it goes on");
        let id = beat.lines().find_map(|line| line.strip_prefix("id: "));
        assert_eq!(version(id.expect("an id")), of_event);
        watch.id = id.expect("an id").to_owned();
    }
    users.bench.create("c", json!({"color": "red"})).await;
    let resumed = users.jane.with("last-event-id", &watch.id);
    let mut resumed = resumed
        .watch(&format!("{MAPS}?watch&filter=data.color"))
        .await;
    assert_eq!(resumed.change().await, "ADDED c");
    // A list waits for an encrypted revision, too.
    let list = users
        .jane
        .get(&format!("{MAPS}?filter=data.color&revision={}", resumed.id))
        .await;
    assert_eq!(list.names(), ["a", "b", "c"]);
    let other = format!("7-s{}", "A".repeat(64));
    let refused = users
        .jane
        .get(&format!("{MAPS}?watch&revision={other}"))
        .await;
    assert!(refused.refused(410).contains("list again"));
}
