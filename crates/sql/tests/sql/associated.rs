//! Queries by the fields of associated kinds.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cache::SharedCacheFactory;
use lariat_core::Gvk;
use lariat_seal::{LocalKeys, Sealing};
use lariat_sql::{
    Access, Association, Field, FieldType, Query, QueryError, Schema, SqlCache, SqlError, SqlKind,
    WatchError, associated, field, label,
};
use serde_json::{Value as Json, json};

use crate::bench::{Bench, maps_kind, names};

fn namespace_kind() -> Gvk {
    Gvk::new("", "v1", "Namespace")
}

/// The schema of Namespaces, with the annotation `size`.
fn namespaces() -> Schema {
    let size = Field::path("metadata.annotations.size", FieldType::Quantity).expect("a path");
    Schema::new(namespace_kind(), [size]).expect("a schema")
}

/// The schema of ConfigMaps, which name a Namespace, another ConfigMap, and have owners.
fn maps() -> Schema {
    let of = Field::path("data.of", FieldType::Text).expect("a path");
    let schema = Schema::new(maps_kind(), [of]).expect("a schema");
    [
        Association::field("of", namespace_kind(), "data.of", "metadata.name"),
        Association::label("named", maps_kind(), "named"),
        Association::controller("controller", maps_kind()),
        Association::owner("owner", maps_kind()),
    ]
    .into_iter()
    .fold(schema, |schema, each| {
        schema.associate(each).expect("a schema")
    })
}

struct Stage {
    bench: Bench,
    _factory: SharedCacheFactory,
    sql: SqlCache,
    maps: SqlKind,
}

impl Stage {
    async fn new() -> Self {
        let bench = Bench::new().await;
        let factory = SharedCacheFactory::new(bench.cluster.client());
        let builder = SqlCache::builder(&factory).kind(maps()).kind(namespaces());
        let sql = builder.start().await.expect("started");
        factory.start();
        let maps = sql.kind(&maps_kind()).expect("the kind is there");
        Self {
            maps,
            sql,
            bench,
            _factory: factory,
        }
    }

    /// Creates a Namespace of a size.
    async fn namespace(&self, name: &str, size: &str) -> String {
        let api: Api<Namespace> = Api::all(self.bench.cluster.client());
        let json = json!({"metadata": {
            "name": name, "annotations": {"size": size}, "labels": {"zone": format!("z-{size}")},
        }});
        let namespace = serde_json::from_value(json).expect("a namespace");
        let created = api.create(&PostParams::default(), &namespace).await;
        let version = created.expect("created").metadata.resource_version;
        version.expect("a version")
    }

    /// Creates a ConfigMap with more metadata; returns its uid.
    async fn map(&self, name: &str, of: &str, mut metadata: Json) -> String {
        metadata["name"] = json!(name);
        let json = json!({"metadata": metadata, "data": {"of": of}});
        let map: ConfigMap = serde_json::from_value(json).expect("a ConfigMap");
        let created = self.bench.maps().create(&PostParams::default(), &map).await;
        created.expect("created").metadata.uid.expect("a uid")
    }

    /// Answers a query of ConfigMaps, once both kinds have all that there is.
    async fn names(&self, query: Query) -> Vec<String> {
        self.names_of(&self.maps, query).await.expect("answered")
    }

    async fn names_of(&self, maps: &SqlKind, query: Query) -> Result<Vec<String>, SqlError> {
        let last = format!("last-{}", fastrand::u64(..));
        let last = self.bench.create(&last, json!({}));
        let last = last.await.parse().expect("a version");
        let answer = maps.query(&query.at_least(last)).await?;
        Ok(names(&answer).into_iter().map(str::to_owned).collect())
    }

    /// Waits until the other kind is at a version.
    async fn settled(&self, version: &str) {
        let namespaces = self.sql.kind(&namespace_kind()).expect("it is there");
        let at_least = Query::new().at_least(version.parse().expect("a version"));
        namespaces.query(&at_least).await.expect("answered");
    }
}

fn size() -> lariat_sql::Subject {
    associated("of", field("metadata.annotations.size"))
}

#[tokio::test]
async fn objects_are_found_sorted_and_counted_by_those_which_they_name() {
    let stage = Stage::new().await;
    stage.namespace("small", "1Gi").await;
    let version = stage.namespace("large", "64Gi").await;
    for (name, of) in [
        ("a", "small"),
        ("b", "large"),
        ("c", "large"),
        ("d", "none"),
    ] {
        stage.map(name, of, json!({})).await;
    }
    stage.settled(&version).await;
    let large = Query::new().filter(size().greater_than("2Gi"));
    assert_eq!(stage.names(large).await, ["b", "c"]);
    let zone = associated("of", label("zone"));
    let known = || Query::new().filter(field("data.of").exists());
    let elsewhere = known().filter(zone.clone().differs("z-64Gi"));
    assert_eq!(stage.names(elsewhere).await, ["a", "d"]);
    let by_size = known().sort_descending(size()).sort(field("metadata.name"));
    assert_eq!(stage.names(by_size).await, ["d", "b", "c", "a"]);
    let url = "filter=of:metadata.labels[zone]=z-64Gi,of:metadata.annotations.size<2Gi&sort=of:metadata.annotations.size";
    let url = Query::from_url(url).expect("a query");
    assert_eq!(stage.names(url).await, ["a", "b", "c"]);
    let counted = stage.maps.query(&Query::new().summarize(zone)).await;
    let counted = counted.expect("answered");
    let counts = counted.summaries[0].iter();
    let counts: Vec<(&str, u64)> = counts.map(|it| (it.value.as_str(), it.objects)).collect();
    assert_eq!(counts, [("z-64Gi", 2), ("z-1Gi", 1)]);
}

#[tokio::test]
async fn a_change_of_either_side_changes_the_answer() {
    let stage = Stage::new().await;
    let version = stage.namespace("one", "1Gi").await;
    stage.map("a", "one", json!({})).await;
    stage.settled(&version).await;
    let large = || Query::new().filter(size().greater_than("2Gi"));
    assert_eq!(stage.names(large()).await, [""; 0]);
    let api: Api<Namespace> = Api::all(stage.bench.cluster.client());
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"size": "4Gi"}}}));
    let patched = api.patch("one", &PatchParams::default(), &patch).await;
    let version = patched.expect("patched").metadata.resource_version;
    stage.settled(&version.expect("a version")).await;
    assert_eq!(stage.names(large()).await, ["a"]);
    stage.bench.patch("a", json!({"data": {"of": "two"}})).await;
    assert_eq!(stage.names(large()).await, [""; 0]);
}

#[tokio::test]
async fn owners_and_labels_lead_to_other_objects() {
    let stage = Stage::new().await;
    let uid = stage.map("boss", "x", json!({})).await;
    let owner = |controls: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": uid, "controller": controls});
    let controlled = json!({"ownerReferences": [owner(true)]});
    stage.map("controlled", "", controlled).await;
    stage
        .map("owned", "", json!({"ownerReferences": [owner(false)]}))
        .await;
    stage
        .map("labelled", "", json!({"labels": {"named": "boss"}}))
        .await;
    let of = |association| {
        let is_x = associated(association, field("data.of")).equals("x");
        stage.names(Query::new().filter(is_x))
    };
    assert_eq!(of("controller").await, ["controlled"]);
    assert_eq!(of("owner").await, ["controlled", "owned"]);
    assert_eq!(of("named").await, ["labelled"]);
    let by_owner = Query::new().sort(associated("owner", field("data.of")));
    let error = stage.maps.query(&by_owner).await.expect_err("many owners");
    assert!(
        matches!(error, SqlError::Query(QueryError::Unsortable { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn a_restricted_view_asks_by_what_may_be_seen_of_the_other_kind_and_by_nothing_else() {
    let stage = Stage::new().await;
    stage.namespace("open", "8Gi").await;
    let version = stage.namespace("hidden", "8Gi").await;
    stage.map("a", "open", json!({})).await;
    stage.map("b", "hidden", json!({})).await;
    stage.settled(&version).await;
    let maps = stage.maps.restricted(Access::everything());
    let large = || Query::new().filter(size().greater_than("2Gi"));
    for query in [
        large(),
        Query::new().sort(size()),
        Query::new().summarize(size()),
    ] {
        let error = stage.names_of(&maps, query).await.expect_err("not known");
        assert!(
            error.to_string().contains("SqlKind::restricted_associated"),
            "{error}"
        );
    }
    let of_other_kind = maps.restricted_associated(&maps_kind(), Access::everything());
    assert!(stage.names_of(&of_other_kind, large()).await.is_err());
    let seen = Access::of_names(None, ["open"]);
    let maps = maps.restricted_associated(&namespace_kind(), seen);
    let found = stage.names_of(&maps, large()).await;
    assert_eq!(found.expect("answered"), ["a"]);
    let sorted = Query::new().filter(field("data.of").exists()).sort(size());
    let sorted = maps.query(&sorted.summarize(size())).await;
    let sorted = sorted.expect("answered");
    assert_eq!(names(&sorted), ["a", "b"]);
    assert_eq!(sorted.summaries[0].len(), 1);
    assert_eq!(sorted.summaries[0][0].objects, 1);
    let none = maps.restricted_associated(&namespace_kind(), Access::nothing());
    let found = stage.names_of(&none, large()).await;
    assert_eq!(found.expect("answered"), [""; 0]);
}

#[tokio::test]
async fn names_that_are_not_known_and_watches_are_errors_that_say_what_to_do() {
    let stage = Stage::new().await;
    let error = |query: Query| {
        let maps = stage.maps.clone();
        async move {
            maps.query(&query)
                .await
                .expect_err("it is wrong")
                .to_string()
        }
    };
    let unknown = Query::new().filter(associated("node", field("x")).exists());
    assert_eq!(
        error(unknown).await,
        "v1 ConfigMap has no association \"node\"; it has of, named, controller, owner"
    );
    let unknown = Query::new().sort(associated("of", field("x")));
    assert_eq!(
        error(unknown).await,
        "v1 Namespace has no indexed field \"x\"; it has metadata.namespace, metadata.name, \
         metadata.creationTimestamp, metadata.uid, metadata.annotations.size"
    );
    let twice = Query::new().summarize(associated("of", size()));
    assert!(error(twice).await.contains("one at a time"));
    let watched = Query::new().filter(size().exists());
    let error = stage
        .maps
        .watch(&watched, None)
        .expect_err("it follows one kind");
    assert!(
        matches!(error, WatchError::Query(QueryError::Association { .. })),
        "{error}"
    );
    let sorted = Query::new().sort(size());
    assert!(
        stage.maps.watch(&sorted, None).is_ok(),
        "only conditions count"
    );
}

/// Returns the error of a cache with these kinds.
async fn refused(schemas: impl IntoIterator<Item = Schema>, sealed: Option<Gvk>) -> String {
    let bench = Bench::new().await;
    let factory = SharedCacheFactory::new(bench.cluster.client());
    let mut builder = SqlCache::builder(&factory);
    for schema in schemas {
        builder = builder.kind(schema);
    }
    if let Some(kind) = sealed {
        let key = std::array::from_fn::<u8, 32, _>(|place| place as u8);
        let key = LocalKeys::from_bytes(&key).expect("a key");
        builder = builder.sealed(Sealing::of_kinds([kind], key));
    }
    let error = builder.start().await.expect_err("it is refused");
    assert!(matches!(error, SqlError::Association { .. }), "{error}");
    error.to_string()
}

#[tokio::test]
async fn associations_that_cannot_be_made_are_errors_at_the_start() {
    assert_eq!(
        refused([maps()], None).await,
        "the association of of v1 ConfigMap: v1 Namespace is not in the cache: add a schema of it"
    );
    for sealed in [maps_kind(), namespace_kind()] {
        let error = refused([maps(), namespaces()], Some(sealed)).await;
        assert!(
            error.contains("is encrypted, so nothing can be joined"),
            "{error}"
        );
    }
    let to = |own, other| {
        let by = Association::field("other", namespace_kind(), own, other);
        maps().associate(by)
    };
    let unknown = to("data.of", "spec.x").expect("a schema");
    let error = refused([unknown, namespaces()], None).await;
    assert!(
        error.contains("v1 Namespace has no indexed field \"spec.x\"; it has"),
        "{error}"
    );
    let unlike = to("data.of", "metadata.annotations.size").expect("a schema");
    let error = refused([unlike, namespaces()], None).await;
    assert!(error.contains("data.of is of the type Text"), "{error}");
    let error = to("data.x", "metadata.name").expect_err("it has no such field");
    assert!(
        error.to_string().contains("it has metadata.namespace"),
        "{error}"
    );
    let twice = Association::label("of", maps_kind(), "x");
    assert!(maps().associate(twice).is_err());
    let unwritable = Association::label("a.b", maps_kind(), "x");
    assert!(maps().associate(unwritable).is_err());
}

#[tokio::test]
async fn a_restricted_view_finds_namespaces_only_by_labels_of_those_that_may_be_seen() {
    let stage = Stage::new().await;
    stage.namespace("open", "8Gi").await;
    let version = stage.namespace("hidden", "8Gi").await;
    for namespace in ["open", "hidden"] {
        let maps: Api<ConfigMap> = Api::namespaced(stage.bench.cluster.client(), namespace);
        let map = json!({"metadata": {"name": format!("in-{namespace}")}});
        let map = serde_json::from_value(map).expect("a ConfigMap");
        maps.create(&PostParams::default(), &map)
            .await
            .expect("created");
    }
    stage.settled(&version).await;
    let query = || Query::new().projects_or_namespaces(["z-8Gi"], "zone", false);
    assert_eq!(stage.names(query()).await, ["in-hidden", "in-open"]);
    // A user who may see all ConfigMaps and no Namespace could find out their labels.
    let maps = stage.maps.restricted(Access::everything());
    let error = stage.names_of(&maps, query()).await.expect_err("not known");
    let what = "add it with SqlKind::restricted_associated";
    assert!(error.to_string().contains(what), "{error}");
    let open = Access::of_names(None, ["open"]);
    let maps = maps.restricted_associated(&namespace_kind(), open);
    let found = stage.names_of(&maps, query()).await;
    assert_eq!(found.expect("answered"), ["in-open"]);
}

#[tokio::test]
async fn a_summary_with_more_values_than_the_query_allows_is_an_error() {
    let stage = Stage::new().await;
    for name in ["a", "b", "c"] {
        stage.map(name, name, json!({})).await;
    }
    let query = || Query::new().filter(field("data.of").exists());
    let query = || query().summarize(field("data.of"));
    assert_eq!(stage.names(query().most_counts(3)).await, ["a", "b", "c"]);
    let error = stage.names_of(&stage.maps, query().most_counts(2)).await;
    let error = error.expect_err("too many").to_string();
    let expected = "the summary by data.of has more than 2 values";
    assert!(error.starts_with(expected), "{error}");
}
