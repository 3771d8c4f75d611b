//! Which rows of an encrypted kind are decrypted, and how they are sealed anew.

use std::sync::Arc;

use lariat_core::ObjectKey;
use lariat_seal::{KeyWrapper, Keyring, LocalKeys};
use serde_json::json;

use super::arbitrary::Change;
use super::reader::Tables;
use super::tests::{Stage, keys as keys_of, new_keys};
use super::{Database, Writer};
use crate::access::Access;
use crate::param::Param;
use crate::query::{Operator, Query, field, label};
use crate::sealed::{Keys, LONGEST};
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

/// Waits on this thread, which drives no connection of a database.
fn wait<T>(of: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(of)
}

/// A process that writes an encrypted cache.
struct Process {
    stage: Stage,
    keys: Keys,
}

impl Process {
    fn start(database: &Database, wrapper: &dyn KeyWrapper) -> Self {
        let mut writer = Writer::open(database).unwrap();
        let keyring = match writer.keyring().unwrap() {
            Some(stored) => wait(Keyring::load(&stored, wrapper)).unwrap(),
            None => {
                let keyring = wait(Keyring::create(wrapper)).unwrap();
                assert!(writer.replace_keyring(None, keyring.stored()).unwrap());
                keyring
            }
        };
        drop(writer);
        let keys = Keys::new(keyring);
        let stage = Stage::on(database, Some(&keys));
        Self { stage, keys }
    }

    fn rotate(&mut self) -> Arc<Keyring> {
        let before = self.keys.current();
        let after = before.rotated().unwrap();
        let writer = &mut self.stage.writer;
        let stored = writer.replace_keyring(Some(before.stored()), after.stored());
        assert!(stored.unwrap());
        self.keys.replace(&before, after);
        self.keys.current()
    }

    /// Seals the next piece of rows anew; returns its last row.
    fn renew(&mut self, keyring: &Keyring, after: i64) -> Option<i64> {
        let of = self.stage.tables.sealed.as_ref().unwrap();
        let renewed = self.stage.writer.renew(of, keyring, after).unwrap()?;
        assert!(renewed.rows <= 20, "a piece is short");
        Some(renewed.last)
    }

    fn retire(&mut self, before: &Arc<Keyring>) -> bool {
        let numbers = vec![self.stage.tables.layout.number()];
        let after = before.without_old().unwrap();
        let is_stored = self.stage.writer.retire(numbers, before, &after).unwrap();
        if is_stored {
            self.keys.replace(before, after);
        }
        is_stored
    }

    /// Returns the number of values in the table that the current data key has not sealed, and of all.
    fn old_values(&mut self) -> (usize, usize) {
        let current = self.keys.current().current_data_key();
        let table = &self.stage.tables.sealed.as_ref().unwrap().table;
        let connection = &mut *self.stage.writer.connection;
        let all = format!("SELECT content, json FROM {table}");
        let rows = connection
            .rows(&Statement::new(connection.dialect(), &all))
            .unwrap();
        let values = rows
            .into_iter()
            .flat_map(|mut row| [row.bytes().unwrap(), row.bytes().unwrap()]);
        let values: Vec<_> = values.collect();
        let old = values
            .iter()
            .filter(|value| Keyring::data_key_of(value).unwrap() != current);
        (old.count(), values.len())
    }
}

fn wrapper() -> LocalKeys {
    let key = LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|_| fastrand::u8(..)));
    key.unwrap()
}

/// Starts a process with 60 rows.
fn filled(database: &Database, wrapper: &dyn KeyWrapper) -> Process {
    let mut process = Process::start(database, wrapper);
    let rows = (10..70).map(|number| put("one", &format!("n{number}"), 1));
    process.stage.apply(&rows.collect::<Vec<_>>());
    process
}

/// Stops in the middle of sealing anew, and goes on.
pub(super) fn stop_and_go_on(database: &Database) {
    let wrapper = wrapper();
    let mut process = filled(database, &wrapper);
    let second = process.rotate();
    assert_eq!(process.old_values(), (120, 120));
    assert!(process.renew(&second, 0).is_some());
    assert_eq!(process.old_values(), (80, 120));
    drop(process);
    let mut process = Process::start(database, &wrapper);
    let second = process.keys.current();
    assert_eq!(second.old_data_keys(), 1);
    assert_eq!(process.stage.answer(&Query::new()).found.len(), 60);
    let mut last = process.renew(&second, 0).unwrap();
    assert_eq!(process.old_values(), (80, 120), "the piece is new already");
    while let Some(next) = process.renew(&second, last) {
        last = next;
    }
    assert_eq!(process.old_values(), (0, 120));
    assert!(process.retire(&second));
    drop(process);
    let mut process = Process::start(database, &wrapper);
    let alone = process.keys.current();
    assert!(alone.data_keys().eq([second.current_data_key()]));
    assert_eq!(process.old_values(), (0, 120));
    assert_eq!(process.stage.answer(&Query::new()).found.len(), 60);
}

/// Writes and rotates again while rows are sealed anew.
pub(super) fn write_and_rotate_meanwhile(database: &Database) {
    let mut process = filled(database, &wrapper());
    let first = process.keys.current();
    let second = process.rotate();
    process.renew(&second, 0).unwrap();
    let changed = ["n10", "n69"].map(|name| put("one", name, 2));
    process.stage.apply(&changed);
    process
        .stage
        .apply(&[delete("one", "n68"), put("two", "a", 1)]);
    assert_eq!(process.old_values(), (76, 120));
    let third = process.rotate();
    assert!(!process.retire(&second), "other keys are stored by now");
    let (mut after, mut number) = (0, 0);
    while let Some(last) = process.renew(&third, after) {
        (after, number) = (last, number + 1);
        // A few, so that there is an end.
        if number < 5 {
            let row = put("three", &format!("n{number}"), 1);
            process.stage.apply(&[row]);
        }
    }
    assert_eq!(process.old_values(), (0, 128));
    assert!(process.retire(&third));
    let keys: Vec<_> = process.keys.current().data_keys().collect();
    assert_eq!(keys, [third.current_data_key()]);
    assert!(first.data_keys().all(|key| !keys.contains(&key)));
    let labelled = Query::new().filter(label("l0").exists());
    assert_eq!(process.stage.answer(&labelled).found.len(), 64);
}

#[test]
fn rows_are_sealed_anew_over_stops_writes_and_rotations() {
    let folder = std::env::temp_dir().join(format!("lariat-sql-{:016x}", fastrand::u64(..)));
    std::fs::create_dir(&folder).unwrap();
    let database = |name| Database::in_file(folder.join(name));
    stop_and_go_on(&database("one"));
    write_and_rotate_meanwhile(&database("two"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn keys_that_were_replaced_meanwhile_are_not_used_again() {
    let keys = new_keys();
    let (first, second) = (keys.current(), keys.current().rotated().unwrap());
    keys.replace(&first, second);
    let second = keys.current();
    // As one that was loaded before the rotation.
    keys.replace(&first, first.rotated().unwrap());
    assert!(keys.is_current(&second));
}

#[test]
fn a_file_is_rewritten_once_for_all_kinds_after_a_rotation() {
    let keys = new_keys();
    let mut stage = Stage::on(&Database::in_memory(), Some(&keys));
    let connection = &mut *stage.writer.connection;
    // As after a rotation of a cache with two encrypted kinds.
    connection
        .run("UPDATE kinds SET signature = 'unclean ' || signature")
        .unwrap();
    connection
        .run("INSERT INTO kinds SELECT number + 1, 'other', signature, 0, 0, 0, 0, NULL FROM kinds")
        .unwrap();
    let tables = stage.tables.clone();
    stage.writer.open_kind(&tables).unwrap();
    let unclean = "SELECT count(*) FROM kinds WHERE signature LIKE 'unclean %'";
    let connection = &mut *stage.writer.connection;
    let sql = Statement::new(connection.dialect(), unclean);
    let mut unclean = connection.first(&sql).unwrap().unwrap();
    assert_eq!(unclean.integer().unwrap(), 0);
}

#[test]
fn an_object_that_is_nested_too_deep_is_read_if_its_row_is_cut() {
    let deep = format!("{}1{}", r#"{"f":"#.repeat(200), "}".repeat(200));
    let (fields, spec) = (
        format!(r#","managedFields":[{{"fieldsV1":{deep}}}]"#),
        format!(r#","spec":{{"text":{deep}}}"#),
    );
    for (metadata, spec) in [("", ""), (&*fields, ""), ("", &*spec)] {
        let json = format!(
            r#"{{"apiVersion":"v1","kind":"Thing","metadata":{{"name":"a","uid":"u","labels":{{"l0":"x"}}{metadata}}}{spec}}}"#
        );
        let mut stage = Stage::new(true);
        stage.cut(0);
        stage.put(json.as_bytes());
        for query in [
            Query::new().filter(label("l0").equals("x")),
            Query::new().sort(label("l0")),
            Query::new().summarize(field("spec.text")),
        ] {
            let found = stage.try_answer(&query);
            assert_eq!(keys_of(&found.expect(&json)), ["a"], "{query:?}");
        }
    }
}
