//! Queries that ask by another kind.

use std::time::Duration;

use lariat_core::Gvk;
use lariat_sql::{
    Association, Operator, Query, Schema, SqlCacheBuilder, SqlError, associated, field,
};

use crate::stage::{Process, Stage, kind, red, schema};

fn namespaces() -> Gvk {
    Gvk::new("", "v1", "Namespace")
}

/// Adds the kind Namespace, with which the ConfigMaps are associated by what they say.
async fn start(stage: &Stage) -> Process {
    let with_namespaces = |builder: SqlCacheBuilder| {
        let namespaces = Schema::new(namespaces(), []).expect("a schema");
        builder
            .kind(namespaces)
            .wait_timeout(Duration::from_secs(2))
    };
    let of = Association::field("of", namespaces(), "data.color", "metadata.name");
    let maps = schema("data.color").associate(of).expect("associated");
    let started = stage
        .start_kind(maps, stage.options(), with_namespaces)
        .await;
    started.expect("started")
}

#[tokio::test]
async fn a_part_of_the_other_kind_is_not_asked_and_all_of_it_is_again() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let writer = start(&stage).await;
    writer.becomes(true).await;
    let reader = start(&stage).await;
    for process in [&writer, &reader] {
        while process.maps.query(&Query::new()).await.is_err() {}
        assert_eq!(process.names(&version).await, ["one"]);
    }
    let by_other = Query::new()
        .namespaces(["default"])
        .filter(associated("of", field("metadata.name")).is(Operator::Missing, [""; 0]));
    let named = Query::new()
        .namespaces(["default"])
        .filter(associated("of", field("metadata.name")).exists());
    let set = |synced: u8| {
        let sql = format!("UPDATE lariat.kinds4 SET synced = {synced} WHERE kind = 'v1 Namespace'");
        stage.server.sql(&sql);
    };
    set(0);
    for process in [&writer, &reader] {
        let error = process.maps.query(&by_other).await.expect_err("a part");
        assert!(
            matches!(&error, SqlError::NotSynced { kind, .. } if *kind == namespaces()),
            "{error}"
        );
        let own = process.maps.query(&Query::new()).await;
        assert!(own.is_ok(), "the kind itself is there");
    }
    set(1);
    for process in [&writer, &reader] {
        let answer = process.maps.query(&by_other).await.expect("answered");
        assert!(answer.objects.iter().any(|it| it.key.name() == "one"));
        let none = process.maps.query(&named).await.expect("answered");
        assert!(none.objects.is_empty());
    }
    assert_eq!(writer.maps.schema().gvk(), &kind());
}
