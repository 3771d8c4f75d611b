//! The SQL cache and its service.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use lariat::cache::SharedCacheFactory;
use lariat::cluster::Cluster;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::prelude::*;
use lariat::sql::http::{SqlService, TokenReviews};
use lariat::sql::{AccessReviews, Field, FieldType, Query, Revision, Schema, SqlCache, SqlKind};
use lariat::sql::{WatchEvent, field, label};
use lariat_integration::{Env, eventually, in_namespace};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The label of the objects that the test makes.
const LABEL: &str = "lariat-test";

fn maps() -> Gvk {
    Gvk::new("", "v1", "ConfigMap")
}

/// Starts a cache of ConfigMaps.
async fn started(client: Client) -> Result<(SharedCacheFactory, SqlCache, SqlKind)> {
    let factory = SharedCacheFactory::new(client);
    let fields = [
        Field::path("data.size", FieldType::Integer)?,
        Field::path("data.color", FieldType::Text)?.searchable(),
    ];
    let namespaces = Schema::new(Gvk::new("", "v1", "Namespace"), [])?;
    let builder = SqlCache::builder(&factory).kind(Schema::new(maps(), fields)?);
    let sql = builder.kind(namespaces).start().await?;
    factory.start();
    let kind = sql.kind(&maps())?;
    Ok((factory, sql, kind))
}

async fn create(api: &Api<ConfigMap>, number: usize) -> Result<Revision> {
    let color = ["red", "green", "dark blue"][number % 3];
    let map = serde_json::from_value(json!({
        "metadata": {"name": format!("map-{number}"), "labels": {LABEL: "yes"}},
        "data": {"size": number.to_string(), "color": color},
    }))?;
    let created = api.create(&PostParams::default(), &map).await?;
    version(&created)
}

fn version(map: &ConfigMap) -> Result<Revision> {
    let version = map.metadata.resource_version.as_deref();
    Ok(version.context("it has a version")?.parse()?)
}

/// Returns the names of what a query finds.
async fn names(kind: &SqlKind, query: &Query) -> Result<Vec<String>> {
    let found = kind.query(query).await?.objects;
    Ok(found.iter().map(|it| it.key.name().to_owned()).collect())
}

#[tokio::test]
async fn a_query_finds_what_the_api_server_has() {
    in_namespace("sql", async |env: &Env| {
        let (factory, sql, kind) = started(env.client.clone()).await?;
        let api: Api<ConfigMap> = env.api();
        let mut last = Revision::default();
        for number in 0..30 {
            last = create(&api, number).await?;
        }
        let own = || {
            Query::new()
                .namespaces([&env.namespace])
                .filter(label(LABEL).equals("yes"))
        };
        let by_size = own().sort_descending(field("data.size"));
        let large = by_size.clone().filter(field("data.size").greater_than(26));
        let large = names(&kind, &large.at_least(last)).await?;
        ensure!(large == ["map-29", "map-28", "map-27"], "{large:?}");
        let blue = names(&kind, &own().search("blu").page(2, 7)).await?;
        ensure!(blue == ["map-23", "map-26", "map-29"], "{blue:?}");

        // Page by page, while objects come and go.
        let mut seen = Vec::new();
        let mut query = by_size.clone().limit(8);
        loop {
            let answer = kind.query(&query).await?;
            seen.extend(answer.objects.iter().map(|it| it.key.name().to_owned()));
            let Some(next) = answer.next else { break };
            query = query.after(&next);
            let gone = format!("map-{}", seen.len() / 8 - 1);
            api.delete(&gone, &DeleteParams::default()).await?;
        }
        let stayed = (3..30).rev().map(|number| format!("map-{number}"));
        let stayed: Vec<String> = stayed.collect();
        ensure!(seen.starts_with(&stayed), "{seen:?}");

        watched(&kind, &api, &own()).await?;
        sql.stop().await;
        factory.stop().await;
        Ok(())
    })
    .await;
}

/// A watch goes on from an answer, and ends up where the API server is.
async fn watched(kind: &SqlKind, api: &Api<ConfigMap>, own: &Query) -> Result<()> {
    let red = own.clone().filter(field("data.color").equals("red"));
    let answer = kind.query(&red).await?;
    let mut watch = kind.watch(&red, Some(answer.revision))?;
    let mut state: BTreeMap<String, ()> = BTreeMap::new();
    for found in &answer.objects {
        state.insert(found.key.name().to_owned(), ());
    }
    let paint = json!({"data": {"color": "red"}});
    let params = PatchParams::default();
    api.patch("map-10", &params, &Patch::Merge(paint)).await?;
    let fade = json!({"data": {"color": "white"}});
    api.patch("map-12", &params, &Patch::Merge(fade)).await?;
    let last = create(api, 33).await?;
    while !state.contains_key("map-33") || watch.revision().version() < last.version() {
        match watch.next().await.context("it goes on")?? {
            WatchEvent::Added(it) | WatchEvent::Modified(it) => {
                state.insert(it.object.key().name().to_owned(), ());
            }
            WatchEvent::Deleted(it) => {
                state.remove(it.object.key().name());
            }
            other => anyhow::bail!("{other:?} is something else"),
        }
    }
    let mut is: Vec<String> = names(kind, &red.clone().at_least(last)).await?;
    is.sort();
    let seen: Vec<String> = state.into_keys().collect();
    ensure!(seen == is, "{seen:?} is not {is:?}");
    ensure!(is.contains(&"map-10".to_owned()) && !is.contains(&"map-12".to_owned()));
    Ok(())
}

/// A service of a cache, and an account that may list ConfigMaps in one namespace.
struct Served {
    address: std::net::SocketAddr,
    token: String,
    _running: JoinSet<()>,
}

impl Served {
    /// Starts a service on the cluster of a client; reviews are asked for each time.
    async fn start(sql: &SqlCache, client: Client, token: String) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let never = std::time::Duration::ZERO;
        let service = SqlService::new(sql)
            .authenticate(TokenReviews::new(client.clone()).with_ttl(never))
            .authorize(AccessReviews::new(client).with_ttl(never));
        let mut running = JoinSet::new();
        running.spawn(async move {
            service.serve_on(listener).await.expect("it serves");
        });
        Ok(Self {
            address,
            token,
            _running: running,
        })
    }

    /// Asks with the account's token; returns the status and the answer.
    async fn get(&self, path: &str) -> Result<(u16, Json)> {
        self.get_as(&self.token, path).await
    }

    async fn get_as(&self, token: &str, path: &str) -> Result<(u16, Json)> {
        let mut stream = TcpStream::connect(self.address).await?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("a head")?;
        let status = head.split(' ').nth(1).context("a status")?.parse()?;
        Ok((status, serde_json::from_str(body)?))
    }
}

/// Makes an account that may list ConfigMaps; returns its token.
async fn account(client: &Client, namespace: &str) -> Result<String> {
    #[derive(Deserialize)]
    struct Made {
        account: ServiceAccount,
        role: Role,
        binding: RoleBinding,
    }
    let group = "rbac.authorization.k8s.io";
    let made: Made = serde_json::from_value(json!({
        "account": {"metadata": {"name": "reader"}},
        "role": {"metadata": {"name": "reader"}, "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
        ]},
        "binding": {"metadata": {"name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
            "roleRef": {"kind": "Role", "name": "reader", "apiGroup": group}},
    }))?;
    let params = PostParams::default();
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    accounts.create(&params, &made.account).await?;
    Api::namespaced(client.clone(), namespace)
        .create(&params, &made.role)
        .await?;
    Api::namespaced(client.clone(), namespace)
        .create(&params, &made.binding)
        .await?;
    let request = TokenRequest::default();
    let token = accounts
        .create_token_request("reader", &params, &request)
        .await?;
    let token = token.status.and_then(|status| status.token);
    token.context("a token")
}

async fn checked(client: Client, namespace: &str) -> Result<()> {
    let (factory, sql, kind) = started(client.clone()).await?;
    let token = account(&client, namespace).await?;
    let api = Api::<ConfigMap>::namespaced(client.clone(), namespace);
    let last = create(&api, 7).await?;
    names(&kind, &Query::new().limit(1).at_least(last)).await?;
    let served = Served::start(&sql, client.clone(), token).await?;
    let path = "/v1/core/v1/ConfigMap";

    let (status, _) = served.get_as("no-token", path).await?;
    ensure!(status == 401, "{status}");
    let (status, list) = served
        .get(&format!(
            "{path}?summary=metadata.namespace&page=1&pagesize=5"
        ))
        .await?;
    let counts = &list["summaries"][0]["counts"];
    ensure!(
        status == 200 && counts.as_array().is_some_and(|counts| counts.len() == 1),
        "{list}"
    );
    ensure!(counts[0]["value"] == namespace, "{counts}");
    let (_, list) = served
        .get(&format!(
            "{path}?filter=metadata.labels[{LABEL}]&namespaces={namespace}"
        ))
        .await?;
    ensure!(list["objects"][0]["metadata"]["name"] == "map-7", "{list}");
    for (path, expected) in [
        (format!("{path}/{namespace}/map-7"), 200),
        (
            format!("{path}/kube-system/extension-apiserver-authentication"),
            403,
        ),
        (format!("{path}?namespaces=kube-system"), 403),
        ("/v1/core/v1/Namespace".to_owned(), 403),
    ] {
        let (status, answer) = served.get(&path).await?;
        ensure!(status == expected, "{path}: {answer}");
    }
    let bindings = Api::<RoleBinding>::namespaced(client.clone(), namespace);
    bindings.delete("reader", &DeleteParams::default()).await?;
    // Authorizers hear of it by a watch of their own.
    eventually(async || {
        let (status, answer) = served.get(path).await?;
        ensure!(status == 403, "{answer}");
        Ok(())
    })
    .await;
    sql.stop().await;
    factory.stop().await;
    Ok(())
}

#[tokio::test]
async fn an_account_with_few_rights_sees_no_more_over_http() {
    in_namespace("sql-http", async |env: &Env| {
        if !env.is_embedded() {
            return checked(env.client.clone(), &env.namespace).await;
        }
        // The embedded cluster of other tests lets everybody do everything.
        let cluster = Cluster::builder().rbac().start().await?;
        checked(cluster.client(), "default").await
    })
    .await;
}
