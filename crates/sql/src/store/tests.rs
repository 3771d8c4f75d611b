//! SQLite answers as the rows themselves do, after any changes and for any query.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::{Gvk, Interner, ManagedFields, ObjectKey, RawObject, Scan};
use lariat_seal::{Keyring, LocalKeys};
use proptest::prelude::*;
use serde_json::json;

use super::arbitrary::{Change, access, change, query};
use super::reader::{Tables, read};
use super::{Database, Reached, Writer, tables};
use crate::field::{Field, FieldType};
use crate::op::Op;
use crate::query::{Others, Plan, Query, Scope, View, field, label};
use crate::read::{ByteLimit, Read, ReadError, Room};
use crate::row::Row;
use crate::schema::{MOST_FIELDS, Schema};
use crate::sealed::{Keys, LONGEST};
use crate::sql::Connection;

fn schema() -> Schema {
    let path = |path, of| Field::path(path, of).unwrap();
    let fields = [
        path("spec.text", FieldType::Text).searchable(),
        path("spec.natural", FieldType::Natural),
        path("spec.integer", FieldType::Integer),
        path("spec.real", FieldType::Real),
        path("spec.boolean", FieldType::Boolean),
        path("spec.quantity", FieldType::Quantity),
        path("spec.time", FieldType::Time),
        path("spec.ip", FieldType::Ip),
        path("spec.many[*]", FieldType::Text).searchable(),
        path("spec.numbers[*]", FieldType::Natural),
    ];
    Schema::new(Gvk::new("", "v1", "Thing"), fields).unwrap()
}

/// Makes keys that no file has.
pub(super) fn new_keys() -> Keys {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let bytes = std::array::from_fn::<u8, 32, _>(|_| fastrand::u8(..));
    let key = LocalKeys::from_bytes(&bytes).unwrap();
    Keys::new(runtime.block_on(Keyring::create(&key)).unwrap())
}

/// A cache and the rows that should be in it.
pub(super) struct Stage {
    schema: Schema,
    reader: RefCell<Box<dyn Connection>>,
    pub(super) writer: Writer,
    pub(super) tables: Tables,
    rows: BTreeMap<ObjectKey, Row>,
    version: u64,
    pub(super) view: View,
}

impl Stage {
    pub(super) fn new(is_sealed: bool) -> Self {
        Self::on(&Database::in_memory(), is_sealed.then(new_keys).as_ref())
    }

    pub(super) fn on(database: &Database, keys: Option<&Keys>) -> Self {
        Self::of(database, schema(), keys)
    }

    fn of(database: &Database, schema: Schema, keys: Option<&Keys>) -> Self {
        let mut writer = Writer::open(database).unwrap();
        let (layout, sealed) = tables(database, &schema, keys);
        let tables = Tables {
            layout,
            schema: schema.clone(),
            sealed,
            namespaces: None,
            associated: Vec::new(),
            joined: Vec::new(),
        };
        writer.open_kind(&tables).unwrap();
        writer
            .apply(&tables, &[], Some((Reached::default(), None)))
            .unwrap();
        Self {
            schema,
            reader: RefCell::new(database.open_to_read().unwrap()),
            writer,
            tables,
            rows: BTreeMap::new(),
            version: 0,
            view: View::default(),
        }
    }

    fn op(&mut self, change: &Change) -> Op {
        self.version += 1;
        let key = change.key.clone();
        let Some((labels, spec)) = &change.object else {
            self.rows.remove(&key);
            return Op::Delete(key);
        };
        let labels: serde_json::Map<_, _> = labels
            .iter()
            .map(|(label, value)| (format!("l{label}"), json!(value)))
            .collect();
        let json = json!({"apiVersion": "v1", "kind": "Thing", "spec": spec, "metadata": {
            "name": key.name(), "namespace": key.namespace(), "uid": "u", "labels": labels,
            "resourceVersion": self.version.to_string(),
        }});
        let text = serde_json::to_vec(&json).unwrap();
        let object = CachedObject::new(RawObject::parse(&text, self.schema.gvk()).unwrap());
        let (row, unindexable) = Row::read(&self.schema, &object, &json);
        assert_eq!(unindexable, []);
        self.rows.insert(key, row.clone());
        Op::Put {
            row,
            json: text,
            is_initial: false,
        }
    }

    pub(super) fn apply(&mut self, changes: &[Change]) {
        let ops: Vec<Op> = changes.iter().map(|change| self.op(change)).collect();
        let reached = Reached {
            version: self.version,
            ..Reached::default()
        };
        self.writer
            .apply(&self.tables, &ops, Some((reached, None)))
            .unwrap();
    }

    /// Writes an object as an informer that keeps managed fields publishes it.
    pub(super) fn put(&mut self, json: &[u8]) {
        let kind = self.schema.gvk();
        let scan = Scan::new(json, kind).unwrap();
        let raw = scan.into_object(kind, &mut Interner::new(), ManagedFields::Keep);
        let object = CachedObject::new(raw.unwrap());
        let json = object.json().unwrap().to_vec();
        let (row, _) = Row::of(&self.schema, &object, &json);
        self.rows.insert(row.key.clone(), row.clone());
        let op = Op::Put {
            row,
            json,
            is_initial: false,
        };
        self.writer
            .apply(&self.tables, &[op], Some((Reached::default(), None)))
            .unwrap();
    }

    fn plan(&self, query: &Query) -> Plan {
        let mut scope = Scope::of(&self.schema);
        scope.view = &self.view;
        Plan::new(&scope, query).unwrap()
    }

    pub(super) fn answer(&self, query: &Query) -> Read {
        self.try_answer(query).unwrap()
    }

    pub(super) fn try_answer(&self, query: &Query) -> Result<Read, ReadError> {
        self.try_answer_within(query, None)
    }

    /// Answers a query with at most so many bytes, for which there is room.
    fn answer_within(&self, query: &Query, most: Option<u64>) -> Read {
        self.try_answer_within(query, most).unwrap()
    }

    fn try_answer_within(&self, query: &Query, most: Option<u64>) -> Result<Read, ReadError> {
        let plan = self.plan(query);
        let mut reader = self.reader.borrow_mut();
        let limit = most.map(|most| ByteLimit {
            most,
            room: Arc::new(Endless),
        });
        read(&mut **reader, &self.tables, &plan, limit.as_ref())
    }

    /// Keeps rows of an encrypted kind short, so that queries read what is missing from the objects.
    pub(super) fn cut(&mut self, longest: usize) {
        if let Some(sealed) = &mut self.tables.sealed {
            sealed.longest = longest;
        }
    }

    /// Returns the keys that the query should find, in their order.
    fn expected(&self, query: &Query) -> Vec<String> {
        let plan = self.plan(query);
        let mut rows: Vec<&Row> = self
            .rows
            .values()
            .filter(|row| plan.matches(&self.schema, row, Others::default()))
            .collect();
        rows.sort_by(|one, other| plan.compare(&self.schema, one, other, Others::default()));
        rows.iter().map(|row| row.key.as_str().to_owned()).collect()
    }
}

/// Checks that the tables of a schema with the most fields can be made, written and read.
pub(super) fn most_fields_have_tables(database: &Database) {
    for end in ["", "[*]"] {
        let fields = (0..MOST_FIELDS - 4).map(|number| {
            let path = format!("spec.f{number}{end}");
            Field::path(&path, FieldType::Natural).unwrap().searchable()
        });
        let schema = Schema::new(Gvk::new("", "v1", "Thing"), fields).unwrap();
        let mut stage = Stage::of(database, schema, None);
        let value = if end.is_empty() { r#""v""# } else { r#"["v"]"# };
        let spec = (0..MOST_FIELDS - 4).map(|number| format!(r#""f{number}":{value}"#));
        let spec = spec.collect::<Vec<_>>().join(",");
        let json = format!(
            r#"{{"apiVersion":"v1","kind":"Thing","metadata":{{"name":"a","uid":"u"}},"spec":{{{spec}}}}}"#
        );
        stage.put(json.as_bytes());
        let last = field(&format!("spec.f{}{end}", MOST_FIELDS - 5));
        let query = Query::new().filter(last.equals("v")).search("v");
        assert_eq!(keys(&stage.answer(&query)), ["a"]);
    }
}

#[test]
fn schema_with_the_most_fields_has_tables() {
    most_fields_have_tables(&Database::in_memory());
}

/// Checks that lists go on behind objects whose metadata is nested too deep for the parser.
pub(super) fn pages_go_on_behind_deep_metadata(mut stage: Stage) {
    let deep = format!("{}1{}", r#"{"f":"#.repeat(200), "}".repeat(200));
    for name in ["a", "b", "c"] {
        let metadata = format!(
            r#""name":"{name}","namespace":"n","uid":"u","managedFields":[{{"fieldsV1":{deep}}}]"#
        );
        let json = format!(r#"{{"apiVersion":"v1","kind":"Thing","metadata":{{{metadata}}}}}"#);
        stage.put(json.as_bytes());
    }
    assert_eq!(keys(&stage.answer(&Query::new())), ["n/a", "n/b", "n/c"]);
    let queries = [
        Query::new(),
        Query::new().namespaces(["n"]),
        Query::new().sort_descending(field("metadata.name")),
        Query::new().sort(field("spec.text")),
        Query::new().filter(field("metadata.uid").equals("u")),
    ];
    agree(&mut stage, &[], &queries).unwrap();
}

#[test]
fn paged_list_continues_behind_objects_with_too_deep_metadata() {
    for is_sealed in [false, true] {
        pages_go_on_behind_deep_metadata(Stage::new(is_sealed));
    }
}

pub(super) fn keys(answer: &Read) -> Vec<String> {
    answer.found.iter().map(|found| found.key.clone()).collect()
}

/// Checks that all queries find what the rows say, as a whole and in parts.
pub(super) fn agree(
    stage: &mut Stage,
    changes: &[Vec<Change>],
    queries: &[Query],
) -> Result<(), TestCaseError> {
    for changes in changes {
        stage.apply(changes);
    }
    for query in queries {
        let expected = stage.expected(query);
        prop_assert_eq!(keys(&stage.answer(query)), expected.clone(), "{:?}", query);
        for size in [1, 3] {
            let pages: Vec<Read> = (1..)
                .map(|page| stage.answer(&query.clone().page(page, size)))
                .take_while(|answer| !answer.found.is_empty())
                .collect();
            let total = Some(expected.len() as u64);
            prop_assert!(pages.iter().all(|answer| answer.total == total));
            let found: Vec<String> = pages.iter().flat_map(keys).collect();
            prop_assert_eq!(&found, &expected);
            let mut next = stage.answer(&query.clone().limit(size));
            let mut found = keys(&next);
            while let Some(cursor) = &next.next {
                next = stage.answer(&query.clone().limit(size).after(cursor));
                found.extend(keys(&next));
            }
            prop_assert_eq!(&found, &expected);
        }
        for most in [0, 600, u64::MAX] {
            let mut next = stage.answer_within(&query.clone().limit(100), Some(most));
            let mut found = keys(&next);
            prop_assert!(most > 0 || found.len() <= 1);
            while let Some(cursor) = &next.next {
                let after = query.clone().limit(100).after(cursor);
                next = stage.answer_within(&after, Some(most));
                prop_assert!(!next.found.is_empty());
                found.extend(keys(&next));
            }
            prop_assert_eq!(&found, &expected, "at most {} bytes", most);
        }
    }
    Ok(())
}

#[derive(Debug)]
struct Endless;

impl Room for Endless {
    fn take(&self, _: u64) -> bool {
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_query_finds_what_the_rows_say_in_their_order(
        changes in prop::collection::vec(prop::collection::vec(change(), 1..8), 1..4),
        queries in prop::collection::vec(query(), 1..6),
        accesses in prop::collection::vec(access(), 0..3),
        is_sealed in any::<bool>(),
        longest in prop::sample::select(vec![0, 400, LONGEST]),
    ) {
        let mut stage = Stage::new(is_sealed);
        stage.cut(longest);
        stage.view.accesses = accesses.into();
        agree(&mut stage, &changes, &queries)?;
    }

    #[test]
    fn summaries_count_what_the_rows_say(
        changes in prop::collection::vec(change(), 1..20),
        query in query(),
        by in prop::sample::select(vec![
            "spec.text", "spec.integer", "spec.natural", "spec.quantity", "spec.many[*]", "spec.numbers[*]", "metadata.labels[l0]",
        ]),
        (is_sealed, by_namespace) in any::<(bool, bool)>(),
        longest in prop::sample::select(vec![0, 400, LONGEST]),
    ) {
        let mut stage = Stage::new(is_sealed);
        stage.cut(longest);
        stage.apply(&changes);
        let mut query = query.summarize(field(by)).only_counts();
        if by_namespace {
            query = query.summarize_by_namespace();
        }
        let answer = stage.answer(&query);
        let plan = stage.plan(&query);
        let mut counts = BTreeMap::new();
        let rows = stage.rows.values().filter(|row| plan.matches(&stage.schema, row, Others::default()));
        for row in rows {
            let mut values = Others::default().values(&plan, row, &plan.summaries[0].target);
            values.sort();
            values.dedup();
            let namespace = row.key.namespace().filter(|_| by_namespace);
            for value in values {
                *counts.entry((value, namespace.map(str::to_owned))).or_insert(0_u64) += 1;
            }
        }
        // Where counts are equal, by value and namespace: the map is in that order.
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, objects)| std::cmp::Reverse(*objects));
        let counts = counts.into_iter().map(|((value, namespace), objects)| (value.to_string(), namespace, objects));
        let counted = answer.summaries[0].iter().map(|count| (count.value.clone(), count.namespace.clone(), count.objects));
        prop_assert_eq!(counted.collect::<Vec<_>>(), counts.collect::<Vec<_>>());
    }
}

#[test]
fn the_largest_queries_are_answered_and_larger_ones_are_errors() {
    let stage = Stage::new(false);
    let either = |count| {
        (0..count)
            .map(|number| label("l0").equals(number))
            .collect::<crate::AnyOf>()
    };
    let query = |count| Query::new().filter(either(count));
    assert_eq!(stage.answer(&query(500)).found.len(), 0);
    let of = Query::new().filter(label("l0").is_in(0..20_000));
    assert_eq!(stage.answer(&of).found.len(), 0);
    let refused = Plan::new(&Scope::of(&stage.schema), &query(501)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the query has 501 conditions; at most 500 are allowed: split the query"
    );
}
