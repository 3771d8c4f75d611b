//! Which rows of an encrypted kind are decrypted.

use lariat_core::ObjectKey;
use serde_json::json;

use super::arbitrary::Change;
use super::reader::Tables;
use super::tests::{Stage, keys as keys_of};
use crate::access::Access;
use crate::param::Param;
use crate::query::{Operator, Query, field, label};
use crate::sealed::LONGEST;
use crate::sql::{Connection, Statement};

fn put(namespace: &str, name: &str, labels: usize) -> Change {
    let labels = (0..labels).map(|number| (number, "a value".to_owned()));
    Change {
        key: ObjectKey::namespaced(namespace, name),
        object: Some((labels.collect(), json!({"text": "red"}))),
    }
}

fn delete(namespace: &str, name: &str) -> Change {
    Change {
        key: ObjectKey::namespaced(namespace, name),
        object: None,
    }
}

/// Makes a column of all rows unreadable, so that a query which decrypts one of them fails.
fn damage(connection: &mut dyn Connection, of: &Tables, column: &str) {
    let table = &of.sealed.as_ref().unwrap().table;
    let update = format!("UPDATE {table} SET {column} = ");
    let sql = Statement::new(connection.dialect(), &update).with("", Param::Bytes(vec![0]));
    assert!(connection.execute(&sql).unwrap() > 0);
}

#[test]
fn rows_of_namespaces_that_a_user_may_not_see_are_not_decrypted() {
    let mut stage = Stage::new(true);
    let others = |namespace| (0..40).map(move |number| put(namespace, &format!("n{number}"), 2));
    stage.apply(&others("two").chain(others("three")).collect::<Vec<_>>());
    damage(&mut *stage.writer.connection, &stage.tables, "content");
    stage.apply(&[put("one", "a", 2), put("one", "b", 2)]);
    let of_one = || Access::of_namespaces(["one"]);
    let by_name = || Access::of_names(Some("one"), ["a"]).union(&Access::of_names(None, ["x"]));
    let read = [
        (vec![of_one()], Query::new(), vec!["one/a", "one/b"]),
        (vec![by_name()], Query::new(), vec!["one/a"]),
        (
            vec![by_name().union(&of_one()), Access::everything()],
            Query::new().sort(label("l0")),
            vec!["one/a", "one/b"],
        ),
        (vec![of_one(), by_name()], Query::new(), vec!["one/a"]),
        (
            vec![Access::of_namespaces(["one", "two"])],
            Query::new().namespaces(["one"]),
            vec!["one/a", "one/b"],
        ),
        (
            vec![],
            Query::new().filter(field("metadata.namespace").is_in(["one", "four"])),
            vec!["one/a", "one/b"],
        ),
        (vec![Access::nothing()], Query::new(), vec![]),
    ];
    for (accesses, query, found) in read {
        stage.view.accesses = accesses.into();
        assert_eq!(keys_of(&stage.answer(&query)), found, "{query:?}");
    }
    let refused = [
        (vec![], Query::new()),
        (vec![Access::of_namespaces(["one", "two"])], Query::new()),
        (vec![Access::of_names(Some("two"), ["n7"])], Query::new()),
        (
            vec![],
            Query::new().filter(field("metadata.namespace").is(Operator::NotEqual, ["one"])),
        ),
    ];
    for (accesses, query) in refused {
        stage.view.accesses = accesses.into();
        assert!(stage.try_answer(&query).is_err(), "{query:?}");
    }
}

#[test]
fn a_row_in_another_namespace_than_its_object_is_damaged() {
    let mut stage = Stage::new(true);
    stage.apply(&[put("one", "a", 0)]);
    damage(&mut *stage.writer.connection, &stage.tables, "namespace");
    assert!(stage.try_answer(&Query::new()).is_err());
    // As at a start: the informer publishes the object again.
    assert_eq!(stage.writer.keys(&stage.tables).unwrap(), [""; 0]);
    assert_eq!(keys_of(&stage.answer(&Query::new())), [""; 0]);
}

#[test]
fn an_object_with_many_labels_is_read_only_by_queries_of_its_labels() {
    let mut stage = Stage::new(true);
    stage.apply(&[
        put("one", "a", 3000),
        put("one", "b", 1),
        put("two", "c", 3000),
    ]);
    let table = stage.tables.sealed.as_ref().unwrap().table.clone();
    let longest = format!("SELECT max(length(content)) FROM {table}");
    let connection = &mut *stage.writer.connection;
    let mut longest = connection
        .first(&Statement::new(connection.dialect(), &longest))
        .unwrap()
        .unwrap();
    assert!(longest.integer().unwrap() < LONGEST as i64);
    let labelled = || Query::new().filter(label("l2999").exists());
    assert_eq!(keys_of(&stage.answer(&labelled())), ["one/a", "two/c"]);
    damage(&mut *stage.writer.connection, &stage.tables, "json");
    let named = Query::new().filter(field("metadata.name").equals("a"));
    for query in [
        named,
        Query::new().sort(field("metadata.creationTimestamp")),
    ] {
        stage.answer(&query.only_counts());
    }
    for query in [
        labelled(),
        Query::new().filter(field("spec.text").equals("red")),
        Query::new().sort(label("l0")),
        Query::new().search("red"),
        Query::new().summarize(label("l0")),
    ] {
        assert!(stage.try_answer(&query.only_counts()).is_err());
    }
    // Those of another namespace cost nothing.
    stage.view.accesses = vec![Access::of_namespaces(["three"])].into();
    assert_eq!(keys_of(&stage.answer(&labelled())), [""; 0]);
}
