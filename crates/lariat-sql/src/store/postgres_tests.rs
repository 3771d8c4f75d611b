//! PostgreSQL answers as the rows themselves do, and as SQLite does.

use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokio::runtime::Runtime;

use super::Database;
use super::reader::Read;
use super::tests::{Stage, access, agree, change, new_keys, query};
use crate::postgres::Postgres;
use crate::query::field;

#[path = "../../tests/postgres/server.rs"]
mod server;

/// A server, and a runtime that drives its connections.
struct Place {
    server: server::Server,
    runtime: Runtime,
    schemas: AtomicU32,
}

impl Place {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let mut runtime = runtime;
        let runtime = runtime.worker_threads(1).enable_all().build();
        Self {
            server: server::Server::start(),
            runtime: runtime.expect("a runtime"),
            schemas: AtomicU32::new(0),
        }
    }

    /// Returns a schema that nothing is in.
    fn schema(&self) -> Database {
        let number = self.schemas.fetch_add(1, Ordering::Relaxed);
        let options = Postgres::new(&self.server.url()).expect("options");
        let options = options.schema(&format!("t{number}")).expect("a name");
        Database::on_server(options)
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
    let place = Place::new();
    let _runtime = place.runtime.enter();
    let changes = prop::collection::vec(prop::collection::vec(change(), 1..8), 1..4);
    let queries = prop::collection::vec(query(), 1..6);
    let accesses = prop::collection::vec(access(), 0..3);
    let cases = (changes, queries, accesses, any::<bool>());
    let tried = Place::runner(60).run(&cases, |(changes, queries, accesses, is_sealed)| {
        let keys = is_sealed.then(new_keys);
        let mut stage = Stage::on(place.schema(), keys.as_ref());
        stage.accesses = accesses.into();
        agree(&mut stage, &changes, &queries)
    });
    tried.unwrap();
}

/// What of an answer has to be the same wherever it comes from.
fn shown(read: &Read) -> impl PartialEq + std::fmt::Debug + use<> {
    let found = read.found.iter();
    let found = found.map(|found| (found.key.clone(), found.version.clone(), found.json.clone()));
    let counts = format!("{:?} {:?} {:?}", read.total, read.next, read.summaries);
    (found.collect::<Vec<_>>(), counts, read.revision)
}

#[test]
fn answers_are_those_of_sqlite() {
    let place = Place::new();
    let _runtime = place.runtime.enter();
    let changes = prop::collection::vec(change(), 1..20);
    let cases = (changes, query(), any::<bool>());
    let tried = Place::runner(60).run(&cases, |(changes, query, is_sealed)| {
        let keys = is_sealed.then(new_keys);
        let mut here = Stage::on(Database::in_memory(), keys.as_ref());
        let mut there = Stage::on(place.schema(), keys.as_ref());
        for changes in changes.chunks(5) {
            here.apply(changes);
            there.apply(changes);
        }
        let all = SUMMARIES.into_iter();
        let query = all.fold(query, |query, name| query.summarize(field(name)));
        for query in [query.clone().limit(2), query.clone().page(1, 3), query.summarize_by_namespace()] {
            prop_assert_eq!(shown(&here.answer(&query)), shown(&there.answer(&query)));
        }
        Ok(())
    });
    tried.unwrap();
}

const SUMMARIES: [&str; 9] = [
    "spec.text", "spec.natural", "spec.integer", "spec.real", "spec.quantity", "spec.time", "spec.many[*]",
    "spec.numbers[*]", "metadata.labels[l0]",
];
