//! PostgreSQL answers as the rows themselves do, and as SQLite does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokio::runtime::Runtime;

use super::arbitrary::{access, change, query};
use super::tests::{
    Stage, agree, keys as keys_of, most_fields_have_tables, new_keys,
    pages_go_on_behind_deep_metadata,
};
use super::{Database, Writer, associated_tests as associated, sealed_tests};
use crate::param::{Arg, Param};
use crate::postgres::{FORM, Postgres};
use crate::query::field;
use crate::read::Read;
use crate::sealed::LONGEST;
use crate::sql::{Connection, Dialect, Statement, StorageError, Transaction};

#[path = "../../tests/postgres/server.rs"]
mod server;

/// A server, and a runtime that drives its connections.
struct TestServer {
    server: server::Server,
    runtime: Runtime,
    schemas: AtomicU32,
}

impl TestServer {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        Self {
            server: server::Server::start(),
            runtime: runtime.expect("a runtime"),
            schemas: AtomicU32::new(0),
        }
    }

    /// Returns a schema that nothing is in.
    fn schema(&self) -> Database {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        let options = Postgres::new(&self.server.url())
            .expect("options")
            .schema(&format!("t{number}"))
            .expect("a name");
        Database::on_server(options, Duration::ZERO, 0)
    }

    fn runner(cases: u32) -> TestRunner {
        TestRunner::new(ProptestConfig {
            cases,
            source_file: Some(file!()),
            ..ProptestConfig::default()
        })
    }
}

#[test]
fn any_query_finds_what_the_rows_say_in_their_order() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let changes = prop::collection::vec(prop::collection::vec(change(), 1..8), 1..4);
    let queries = prop::collection::vec(query(), 1..6);
    let accesses = prop::collection::vec(access(), 0..3);
    let sealed = prop::option::of(prop::sample::select(vec![0, LONGEST]));
    let cases = (changes, queries, accesses, sealed);
    let tried = TestServer::runner(40).run(&cases, |(changes, queries, accesses, sealed)| {
        let keys = sealed.map(|_| new_keys());
        let mut stage = Stage::on(&place.schema(), keys.as_ref());
        stage.cut(sealed.unwrap_or_default());
        stage.view.accesses = accesses.into();
        agree(&mut stage, &changes, &queries)
    });
    tried.unwrap();
}

#[test]
fn any_query_by_associated_objects_finds_and_counts_what_the_rows_say() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let objects = prop::collection::vec(associated::object(), 1..40);
    let queries = prop::collection::vec(associated::query(), 1..8);
    let own = prop::collection::vec(associated::access(), 0..2);
    let others = prop::collection::vec(associated::access(), 3);
    let cases = (objects, queries, own, others);
    let tried = TestServer::runner(40).run(&cases, |(objects, queries, own, others)| {
        let view = associated::view(own, others);
        let here = associated::Stage::on(&Database::in_memory(), &objects);
        let there = associated::Stage::on(&place.schema(), &objects);
        associated::agree(&there, &queries, &view)?;
        for query in &queries {
            if here.plan(query, &view).is_err() {
                continue;
            }
            for query in [query.clone().limit(2), query.clone().page(1, 3)] {
                let (here, there) = (here.answer(&query, &view), there.answer(&query, &view));
                prop_assert_eq!(shown(&here), shown(&there), "{:?}", query);
            }
        }
        Ok(())
    });
    tried.unwrap();
}

/// What of an answer has to be the same wherever it comes from.
fn shown(read: &Read) -> impl PartialEq + std::fmt::Debug + use<> {
    let found = read
        .found
        .iter()
        .map(|found| (found.key.clone(), found.version.clone(), found.json.clone()));
    let counts = format!("{:?} {:?} {:?}", read.total, read.next, read.summaries);
    (found.collect::<Vec<_>>(), counts, read.revision)
}

#[test]
fn answers_are_those_of_sqlite() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let changes = prop::collection::vec(change(), 1..20);
    let cases = (changes, query(), any::<bool>());
    let tried = TestServer::runner(30).run(&cases, |(changes, query, is_sealed)| {
        let keys = is_sealed.then(new_keys);
        let mut here = Stage::on(&Database::in_memory(), keys.as_ref());
        let mut there = Stage::on(&place.schema(), keys.as_ref());
        for changes in changes.chunks(5) {
            here.apply(changes);
            there.apply(changes);
        }
        let all = SUMMARIES.into_iter();
        let query = all.fold(query, |query, name| query.summarize(field(name)));
        for query in [
            query.clone().limit(2),
            query.clone().page(1, 3),
            query.summarize_by_namespace(),
        ] {
            let (mut here_read, mut there_read) = (here.answer(&query), there.answer(&query));
            if is_sealed {
                // No two are sealed to the same text, but each is a cursor there as well.
                prop_assert_eq!(here_read.next.is_some(), there_read.next.is_some());
                let next = here_read.next.take().zip(there_read.next.take());
                if let Some((next, other)) = next {
                    let (next, other) = (query.clone().after(&next), query.clone().after(&other));
                    let (rest, other_rest) = (here.answer(&other), there.answer(&next));
                    prop_assert_eq!(rest.next.is_some(), other_rest.next.is_some());
                    prop_assert_eq!(keys_of(&rest), keys_of(&other_rest));
                }
            }
            prop_assert_eq!(shown(&here_read), shown(&there_read));
        }
        Ok(())
    });
    tried.unwrap();
}

const SUMMARIES: [&str; 9] = [
    "spec.text",
    "spec.natural",
    "spec.integer",
    "spec.real",
    "spec.quantity",
    "spec.time",
    "spec.many[*]",
    "spec.numbers[*]",
    "metadata.labels[l0]",
];

#[test]
fn schema_with_the_most_fields_has_tables() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    most_fields_have_tables(&place.schema());
}

#[test]
fn paged_list_continues_behind_objects_with_too_deep_metadata() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    for keys in [None, Some(new_keys())] {
        pages_go_on_behind_deep_metadata(Stage::on(&place.schema(), keys.as_ref()));
    }
}

/// Writes a row that is no kind.
fn put(connection: &mut dyn Connection) {
    let row = [Arg::Integer(7), Arg::text("kind"), Arg::text("plain")]
        .into_iter()
        .chain([0; 4].map(Arg::Integer))
        .chain([Arg::Null])
        .collect();
    connection.insert("kinds4", &[row]).expect("written");
}

#[test]
fn one_writes_until_another_takes_over() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let database = place.schema();
    let (mut one, mut other) = (database.open().unwrap(), database.open().unwrap());
    assert!(one.claim(false).unwrap());
    assert!(!other.claim(false).unwrap(), "another writes");
    // It is stopped in the middle of a transaction.
    one.begin(Transaction::Writes).unwrap();
    put(&mut *one);
    assert!(other.claim(true).unwrap(), "by force");
    assert!(one.commit().is_err());
    assert!(one.is_lost());
    let mut reader = database.open_to_read().unwrap();
    let count = Statement::new(Dialect::Postgres, "SELECT count(*) FROM kinds4");
    let counted = reader.first(&count).unwrap().unwrap().integer();
    assert_eq!(counted.unwrap(), 0, "nothing is half written");
    other.begin(Transaction::Writes).unwrap();
    put(&mut *other);
    other.commit().unwrap();
    drop(other);
    // Its session may end a moment later.
    let mut third = database.open().unwrap();
    assert!(third.claim(true).unwrap());
}

#[test]
fn a_superseded_writer_writes_nothing_and_returns_an_error() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let database = place.schema();
    let mut writer = Writer::open(&database).unwrap();
    assert!(writer.claim(false).unwrap());
    writer.beat().unwrap();
    // As another does whose lock a pool of connections has given to two.
    place.server.sql("UPDATE t0.writer4 SET epoch = epoch + 1");
    let error = writer.beat().unwrap_err();
    assert!(matches!(error, StorageError::Superseded), "{error}");
    assert!(writer.is_lost());
}

#[test]
fn rows_are_sealed_anew_over_stops_writes_and_rotations() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    sealed_tests::stop_and_go_on(&place.schema());
    sealed_tests::write_and_rotate_meanwhile(&place.schema());
}

#[test]
fn a_reader_cannot_write() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let database = place.schema();
    drop(database.open().unwrap());
    let mut reader = database.open_to_read().unwrap();
    let error = reader.run("DELETE FROM kinds4").unwrap_err().to_string();
    assert!(error.contains("read-only"), "{error}");
    assert!(!reader.claim(true).unwrap());
}

#[test]
fn tables_of_another_form_stay_until_no_process_uses_them() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let other = "CREATE SCHEMA t0;
        CREATE TABLE t0.lariat_tables (number bigint PRIMARY KEY, used timestamptz NOT NULL);
        CREATE TABLE t0.kinds77 (a int); CREATE TABLE t0.thing123_5 (a int); CREATE TABLE t0.thing1234 (a int);
        INSERT INTO t0.lariat_tables SELECT unnest(ARRAY[77, 123, 1234]), now()";
    place.server.sql(other);
    let mut writer = Writer::open(&place.schema()).unwrap();
    assert!(writer.claim(false).unwrap());
    writer.touch(&[FORM]).unwrap();
    // All are in use.
    writer.drop_unused().unwrap();
    let number = "SELECT count(*) FROM t0.lariat_tables";
    assert_eq!(place.server.sql(number), "4");
    let earlier = "UPDATE t0.lariat_tables SET used = now() - interval '61 minutes'";
    place.server.sql(&format!("{earlier} WHERE number <> 1234"));
    writer.touch(&[FORM]).unwrap();
    writer.drop_unused().unwrap();
    let tables = "SELECT string_agg(tablename, ' ' ORDER BY tablename) FROM pg_tables WHERE schemaname = 't0'";
    assert_eq!(
        place.server.sql(tables),
        "keyring4 kinds4 lariat_tables thing1234 writer4"
    );
}

#[test]
fn tables_that_a_reader_has_are_dropped_later() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let database = place.schema();
    let mut writer = Writer::open(&database).unwrap();
    assert!(writer.claim(false).unwrap());
    writer.touch(&[5]).unwrap();
    let earlier = "CREATE TABLE t0.row5 (a int); UPDATE t0.lariat_tables SET used = now() - interval '61 minutes'";
    place.server.sql(earlier);
    let mut reader = database.open_to_read().unwrap();
    reader.begin(Transaction::Reads).unwrap();
    reader.run("SELECT * FROM row5").unwrap();
    let error = writer.drop_unused().unwrap_err().to_string();
    assert!(error.contains("lock timeout"), "{error}");
    reader.roll_back();
    writer.beat().unwrap();
    writer.drop_unused().unwrap();
    assert!(reader.run("SELECT * FROM row5").is_err());
}

#[test]
fn each_edition_has_its_own_keys_and_writer() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let options = Postgres::new(&place.server.url()).unwrap();
    let of = |edition| Database::on_server(options.clone(), Duration::ZERO, edition);
    let (mut one, mut two) = (Writer::open(&of(1)).unwrap(), Writer::open(&of(2)).unwrap());
    assert!(one.claim(false).unwrap() && two.claim(false).unwrap());
    assert!(one.replace_keyring(None, b"one").unwrap());
    assert_eq!(two.keyring().unwrap(), None);
    assert!(two.replace_keyring(None, b"two").unwrap());
    assert!(two.replace_keyring(Some(b"two"), b"three").unwrap());
    assert!(!two.replace_keyring(Some(b"one"), b"four").unwrap());
    assert_eq!(one.keyring().unwrap().unwrap(), b"one");
    let mut other = Writer::open(&of(1)).unwrap();
    assert!(!other.claim(false).unwrap(), "one of each writes");
    drop(one);
    while !other.claim(false).unwrap() {}
    two.beat().unwrap();
}

#[test]
fn a_leader_takes_the_right_from_former_ones_of_all_editions() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let options = Postgres::new(&place.server.url()).unwrap();
    let of = |edition| Database::on_server(options.clone(), Duration::ZERO, edition);
    let mut formers = [1, 2].map(|edition| Writer::open(&of(edition)).unwrap());
    for former in &mut formers {
        assert!(former.claim(false).unwrap());
        former.beat().unwrap();
    }
    let mut leader = Writer::open(&of(1)).unwrap();
    assert!(leader.claim(true).unwrap());
    for former in &mut formers {
        // It was suspended, and goes on as if it led.
        assert!(former.disown(Vec::new()).is_err());
        assert!(former.is_lost());
    }
    leader.beat().unwrap();
}

#[test]
fn schema_of_another_program_is_refused() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    place
        .server
        .sql("CREATE SCHEMA t0; CREATE TABLE t0.mine (a int)");
    let error = place.schema().open().err().unwrap().to_string();
    assert!(error.contains("give the cache one of its own"), "{error}");
    place.server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0 LOCALE_PROVIDER 'libc'");
    let url = place.server.url().replace("/postgres?", "/latin?");
    let latin = Database::on_server(Postgres::new(&url).unwrap(), Duration::ZERO, 0);
    let error = latin.open().err().unwrap().to_string();
    assert!(
        error.contains("encoding LATIN1: create one with UTF8"),
        "{error}"
    );
}

#[test]
fn a_parameter_of_another_type_is_an_error() {
    let place = TestServer::new();
    let _runtime = place.runtime.enter();
    let mut connection = place.schema().open().unwrap();
    let sql = Statement::new(Dialect::Postgres, "SELECT kind FROM kinds4 WHERE kind = ");
    let error = connection
        .rows(&sql.with("", Param::Integer(1)))
        .unwrap_err();
    assert!(
        error.to_string().contains("of another type than text"),
        "{error}"
    );
    assert!(!connection.is_lost());
}
