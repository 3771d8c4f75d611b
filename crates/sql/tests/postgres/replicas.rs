//! Replicas that share one cache.

use std::time::Duration;

use lariat_lease::{Elector, Leadership, Lease};
use lariat_sql::{Query, WatchError, field};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, red, schema};

#[tokio::test]
async fn one_writes_and_all_answer_the_same() {
    let stage = Stage::new().await;
    stage.create("one", red()).await;
    let writer = stage.start().await;
    writer.becomes(true).await;
    let reader = stage.start().await;
    for number in 0..30 {
        let color = if number % 3 == 0 { "red" } else { "blue" };
        stage
            .create(
                &format!("n{number}"),
                json!({"color": color, "size": "x".repeat(number)}),
            )
            .await;
    }
    stage.delete("n3").await;
    let version = stage.create("last", red()).await;
    let by_name = || {
        Query::new()
            .sort_descending(field("metadata.name"))
            .summarize(field("data.color"))
    };
    for query in [by_name(), by_name().page(2, 7), by_name().limit(5)] {
        let here = writer.at(query.clone(), &version).await;
        let there = reader.at(query, &version).await;
        assert_eq!(here.objects, there.objects);
        assert_eq!((here.total, here.revision), (there.total, there.revision));
        assert_eq!((here.summaries, here.next), (there.summaries, there.next));
    }
    assert!(!reader.sql.is_writing());
    assert_eq!(
        stage.cluster.journal().count("watch", "configmaps"),
        1,
        "one watch for both"
    );
}

#[tokio::test]
async fn a_watch_begins_where_the_cache_is_written_from_any_answer() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let writer = stage.start().await;
    writer.becomes(true).await;
    let reader = stage.start().await;
    let answer = reader.at(Query::new(), &version).await;
    let refused = reader
        .maps
        .watch(&Query::new(), Some(answer.revision))
        .expect_err("it only reads");
    assert!(matches!(refused, WatchError::Elsewhere { .. }), "{refused}");
    let watch = writer.maps.watch(&Query::new(), Some(answer.revision));
    let mut watch = watch.expect("it knows the revision");
    stage.create("two", red()).await;
    let event = watch.next().await.expect("it goes on").expect("an event");
    assert_eq!(event.watched().object.key().name(), "two");
    // What the next one has written is of another history.
    writer.stop().await;
    let ended = watch.next().await.expect("an error").expect_err("stopped");
    assert!(matches!(ended, WatchError::Stopped { .. }), "{ended}");
    reader.becomes(true).await;
    let version = stage.create("three", red()).await;
    reader.at(Query::new(), &version).await;
    let old = reader
        .maps
        .watch(&Query::new(), Some(answer.revision))
        .expect_err("of another history");
    assert!(matches!(old, WatchError::TooOld { .. }), "{old}");
    reader
        .maps
        .watch(&Query::new(), None)
        .expect("it begins now");
}

#[tokio::test]
async fn another_takes_over_from_one_that_stops() {
    let stage = Stage::new().await;
    stage.create("stays", red()).await;
    let version = stage.create("goes", red()).await;
    let first = stage.start().await;
    first.becomes(true).await;
    let second = stage.start().await;
    assert_eq!(second.names(&version).await, ["goes", "stays"]);
    first.stop().await;
    stage.delete("goes").await;
    let version = stage.create("comes", red()).await;
    assert_eq!(second.names(&version).await, ["comes", "stays"]);
    assert!(second.sql.is_writing());
    // A third finds what they have left, and waits for its turn.
    let third = stage.start().await;
    assert_eq!(third.names(&version).await, ["comes", "stays"]);
    assert!(!third.sql.is_writing());
}

#[tokio::test]
async fn one_whose_connection_ends_writes_no_more_until_it_is_its_turn() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let (one, other) = (stage.start().await, stage.start().await);
    assert_eq!(one.names(&version).await, ["one"]);
    let mut expected = vec!["one".to_owned()];
    for round in 0..3 {
        // That of the writing replica, and that of a waiting one.
        assert!(stage.terminate("lariat-sql") > 0);
        let name = format!("round-{round}");
        let version = stage.create(&name, red()).await;
        expected.push(name);
        assert_eq!(one.names(&version).await, expected);
        assert_eq!(other.names(&version).await, expected);
        assert_ne!(one.sql.is_writing(), other.sql.is_writing());
    }
}

#[tokio::test]
async fn the_leader_writes_and_takes_over_by_force() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let holder = stage.start().await;
    assert_eq!(holder.names(&version).await, ["one"]);
    let lease = Lease::new("fleet").identity("leader");
    let elector = Elector::new(stage.cluster.client(), lease).expect("it is valid");
    let options = stage.options().written_by_leader(elector.leadership());
    let leader = stage
        .start_with(options, |builder| builder)
        .await
        .expect("started");
    assert_eq!(leader.names(&version).await, ["one"]);
    assert!(!leader.sql.is_writing(), "it does not lead yet");
    let (stop, mut run) = (CancellationToken::new(), JoinSet::new());
    let stopped = stop.clone().cancelled_owned();
    run.spawn(async move { elector.run(stopped).await });
    leader.becomes(true).await;
    holder.becomes(false).await;
    let version = stage.create("two", red()).await;
    assert_eq!(holder.names(&version).await, ["one", "two"]);
    stop.cancel();
    run.join_next()
        .await
        .expect("it ran")
        .expect("no panic")
        .expect("it ended");
    // Who leads no more gives it back.
    holder.becomes(true).await;
    leader.becomes(false).await;
    let version = stage.create("three", red()).await;
    assert_eq!(leader.names(&version).await, ["one", "three", "two"]);
}

#[tokio::test]
async fn no_reader_sees_a_part_of_what_a_new_writer_writes() {
    let stage = Stage::new().await;
    let mut version = String::new();
    for number in 0..1200 {
        version = stage.create(&format!("n{number}"), red()).await;
    }
    let first = stage.start().await;
    let elector = Elector::new(stage.cluster.client(), Lease::new("fleet")).expect("it is valid");
    // It never leads, so it only reads.
    let options = stage.options().written_by_leader(elector.leadership());
    let reader = stage
        .start_with(options, |builder| builder)
        .await
        .expect("started");
    assert_eq!(reader.names(&version).await.len(), 1200);
    first.stop().await;
    for number in 0..1200 {
        stage
            .patch(&format!("n{number}"), json!({"color": "blue"}))
            .await;
    }
    let second = stage.start().await;
    let by_color = Query::new()
        .namespaces(["default"])
        .summarize(field("data.color"));
    loop {
        let answer = reader.maps.query(&by_color).await.expect("answered");
        let colors = answer.summaries[0].iter();
        let colors: Vec<(&str, u64)> = colors
            .map(|count| (count.value.as_str(), count.objects))
            .collect();
        assert!(matches!(colors[..], [("red" | "blue", 1200)]), "{colors:?}");
        if colors[0].0 == "blue" {
            break;
        }
    }
    assert!(second.sql.is_writing());
}

/// An elector of the test's Lease, with a task that runs it until it is stopped.
struct Leader {
    elector: Leadership,
    stop: CancellationToken,
    run: JoinSet<()>,
}

impl Leader {
    fn start(stage: &Stage, identity: &str) -> Self {
        let lease = Lease::new("fleet").identity(identity);
        let elector = Elector::new(stage.cluster.client(), lease).expect("it is valid");
        let leadership = elector.leadership();
        let (stop, mut run) = (CancellationToken::new(), JoinSet::new());
        let stopped = stop.clone().cancelled_owned();
        run.spawn(async move { elector.run(stopped).await.expect("it ended") });
        Self {
            elector: leadership,
            stop,
            run,
        }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        self.run
            .join_next()
            .await
            .expect("it ran")
            .expect("no panic");
    }
}

#[tokio::test]
async fn kind_that_the_leader_does_not_keep_is_not_answered() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let old = stage.start().await;
    assert_eq!(old.names(&version).await, ["one"]);
    let elector = Elector::new(stage.cluster.client(), Lease::new("fleet")).expect("it is valid");
    let options = stage.options().written_by_leader(elector.leadership());
    let wait_timeout = Duration::from_millis(300);
    let reader = stage
        .start_with(options, |builder| builder.wait_timeout(wait_timeout))
        .await;
    let reader = reader.expect("started");
    assert_eq!(reader.names(&version).await, ["one"]);
    old.stop().await;
    let leader = Leader::start(&stage, "without");
    let options = stage.options().written_by_leader(leader.elector.clone());
    let factory = lariat_cache::SharedCacheFactory::new(stage.cluster.client());
    let without = lariat_sql::SqlCache::builder(&factory).in_postgres(options);
    let without = without.start().await.expect("started");
    while reader.maps.query(&Query::new()).await.is_ok() {}
    assert!(without.is_writing());
    let error = reader
        .maps
        .query(&Query::new())
        .await
        .expect_err("it may be old")
        .to_string();
    assert!(
        error.contains("leads and keeps other kinds or fields"),
        "{error}"
    );
    without.stop().await;
    leader.stop().await;
}

/// Counts the tables of rows, one for each kind of each sort of replicas.
fn row_tables(stage: &Stage) -> String {
    let sql =
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'lariat' AND tablename ~ '^row[0-9]+$'";
    stage.server.sql(sql)
}

#[tokio::test]
async fn replicas_with_other_fields_answer_side_by_side() {
    let stage = Stage::new().await;
    stage.create("one", red()).await;
    let old = stage.start().await;
    old.becomes(true).await;
    let new = || stage.start_kind(schema("data.size"), stage.options(), |builder| builder);
    let first = new().await.expect("started");
    first.becomes(true).await;
    let second = new().await.expect("started");
    for round in 0..2 {
        let name = format!("round-{round}");
        let sized = json!({"color": "red", "size": "1"});
        let version = stage.create(&name, sized).await;
        let by_size = || Query::new().filter(field("data.size").exists());
        assert_eq!(old.names(&version).await.len(), 2 + round);
        for process in [&first, &second] {
            let answer = process.at(by_size(), &version).await;
            assert_eq!(answer.objects.len(), 1 + round);
        }
        assert!(old.sql.is_writing() && first.sql.is_writing());
        assert!(!second.sql.is_writing());
    }
    assert_eq!(row_tables(&stage), "2");
    // As a rolling update ends.
    first.stop().await;
    old.stop().await;
    let version = stage.create("last", json!({"size": "2"})).await;
    let answer = second.at(Query::new(), &version).await;
    assert_eq!(answer.objects.len(), 4);
    // And as it is undone.
    let old = stage.start().await;
    assert_eq!(old.names(&version).await, ["one", "round-0", "round-1"]);
    assert_eq!(row_tables(&stage), "2");
}

#[tokio::test]
async fn tables_of_followers_with_other_fields_outlast_a_leader() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let start = async |path: &str, leader: &Leader| {
        let options = stage.options().written_by_leader(leader.elector.clone());
        let started = stage.start_kind(schema(path), options, |builder| builder);
        started.await.expect("started")
    };
    let leader = Leader::start(&stage, "a");
    let old = start("data.color", &leader).await;
    assert_eq!(old.names(&version).await, ["one"]);
    let next = Leader::start(&stage, "b");
    let new = start("data.size", &next).await;
    leader.stop().await;
    new.becomes(true).await;
    old.becomes(false).await;
    new.at(Query::new(), &version).await;
    assert_eq!(row_tables(&stage), "2");
    let leader = Leader::start(&stage, "c");
    let again = start("data.color", &leader).await;
    next.stop().await;
    again.becomes(true).await;
    let version = stage.create("two", red()).await;
    // Written again, and read by the one that follows now.
    assert_eq!(again.names(&version).await, ["one", "two"]);
    assert_eq!(old.names(&version).await, ["one", "two"]);
    assert_eq!(row_tables(&stage), "2");
    leader.stop().await;
}

#[tokio::test]
async fn tables_that_no_replica_used_for_an_hour_are_dropped() {
    let stage = Stage::new().await;
    let version = stage.create("one", red()).await;
    let old = stage.start().await;
    assert_eq!(old.names(&version).await, ["one"]);
    old.stop().await;
    let new = stage
        .start_kind(schema("data.size"), stage.options(), |builder| builder)
        .await
        .expect("started");
    new.becomes(true).await;
    new.at(Query::new(), &version).await;
    assert_eq!(row_tables(&stage), "2", "they were used just now");
    new.stop().await;
    let earlier = "UPDATE lariat.lariat_tables SET used = now() - interval '61 minutes'";
    stage.server.sql(earlier);
    // Those that it uses are its own again before it looks.
    let new = stage
        .start_kind(schema("data.size"), stage.options(), |builder| builder)
        .await
        .expect("started");
    let numbers =
        "SELECT count(*) FROM lariat.lariat_tables WHERE used < now() - interval '1 hour'";
    while stage.server.sql(numbers) == "2" || row_tables(&stage) == "2" {
        time::sleep(Duration::from_millis(20)).await;
    }
    let version = stage.create("two", red()).await;
    assert_eq!(new.at(Query::new(), &version).await.objects.len(), 2);
    assert_eq!(row_tables(&stage), "1");
    let labels =
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'lariat' AND tablename ~ '^label'";
    assert_eq!(stage.server.sql(labels), "1");
    let old = stage.start().await;
    assert_eq!(old.names(&version).await, ["one", "two"], "made again");
}
