//! A database answers by associated kinds as the rows themselves do.

use std::cell::RefCell;
use std::collections::BTreeMap;

use lariat_cache::CachedObject;
use lariat_core::{Gvk, ObjectKey, RawObject};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::arbitrary::sorted;
use super::reader::{Tables, read};
use super::{Database, Reached, Writer, tables};
use crate::access::Access;
use crate::associated::Associated;
use crate::association::Association;
use crate::field::{Field, FieldType};
use crate::op::Op;
use crate::query::{
    Condition, Operator, Others, Plan, Query, Scope, Subject, View, associated, field, label,
};
use crate::read::Read;
use crate::row::Row;
use crate::schema::Schema;
use crate::sql::Connection;

/// Names of objects, and values of their fields.
///
/// The key of an object in a namespace and a text with a quote are among them.
const TEXTS: [&str; 6] = ["a", "A", "a1", "10", "two/a", "it's"];

/// Associations, by their names; those of the first four have one object at most.
const NAMES: [&str; 10] = [
    "named",
    "natural",
    "labelled",
    "controller",
    "place",
    "manynames",
    "owner",
    "number",
    "tomany",
    "mixed",
];

fn kind(name: &str) -> Gvk {
    Gvk::new("", "v1", name)
}

fn schema(name: &str) -> Schema {
    let path = |path, of| Field::path(path, of).unwrap();
    let fields = [
        path("spec.text", FieldType::Text),
        path("spec.natural", FieldType::Natural),
        path("spec.integer", FieldType::Integer),
        path("spec.many[*]", FieldType::Text),
    ];
    Schema::new(kind(name), fields).unwrap()
}

/// The schema of the queried kind, associated with the two others and itself.
fn asked() -> Schema {
    let (name, other) = ("metadata.name", || kind("Other"));
    let all = [
        Association::field("named", other(), "spec.text", name),
        Association::field("natural", kind("Thing"), "spec.natural", name),
        Association::label("labelled", other(), "l0"),
        Association::controller("controller", other()),
        Association::field("place", kind("Place"), "spec.text", name),
        Association::field("manynames", other(), "spec.many[*]", name),
        Association::owner("owner", kind("Place")),
        Association::field("number", kind("Place"), "spec.integer", "spec.integer"),
        Association::field("tomany", other(), "spec.text", "spec.many[*]"),
        Association::field("mixed", other(), "spec.natural", "spec.text"),
    ];
    let thing = schema("Thing");
    let associate = |schema: Schema, each| schema.associate(each).unwrap();
    all.into_iter().fold(thing, associate)
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(TEXTS.as_slice()).prop_map(str::to_owned)
}

/// An object: its kind's place, namespace and name, and what else it has.
pub(super) type Object = (usize, ObjectKey, Json);

pub(super) fn object() -> impl Strategy<Value = Object> {
    let place = (0..3_usize, 0..2_usize, 0..TEXTS.len());
    let values = (
        prop::option::weighted(0.8, text()),
        prop::option::weighted(0.8, text()),
        prop::option::weighted(0.8, 0..3_i64),
        prop::collection::vec(text(), 0..3),
    );
    let labels = prop::collection::btree_map(prop::sample::select(vec!["l0", "l1"]), text(), 0..2);
    let owners = prop::collection::vec((0..3_usize, text(), any::<bool>()), 0..3);
    (place, values, labels, owners).prop_map(|(place, values, labels, owners)| {
        let (kind, namespace, name) = place;
        let key = match kind {
            2 => ObjectKey::cluster(TEXTS[name]),
            _ => ObjectKey::namespaced(["one", "two"][namespace], TEXTS[name]),
        };
        let mut owners = owners;
        // The API server allows one controller.
        for (.., is_controller) in owners.iter_mut().skip(1) {
            *is_controller = false;
        }
        owners.sort();
        owners.dedup_by(|one, other| (&one.0, &one.1) == (&other.0, &other.1));
        let owners: Vec<Json> = owners
            .iter()
            .map(|(kind, name, is_controller)| json!({"uid": format!("{kind} {name}"), "controller": is_controller}))
            .collect();
        let (text, natural, integer, many) = values;
        let content = json!({
            "spec": {"text": text, "natural": natural, "integer": integer, "many": many},
            "labels": labels, "owners": owners,
        });
        (kind, key, content)
    })
}

/// What of an object, and the type of its values.
fn subject() -> impl Strategy<Value = Subject> {
    let of = prop::sample::select(vec![
        field("spec.text"),
        field("spec.natural"),
        field("spec.integer"),
        field("spec.many[*]"),
        field("metadata.name"),
        field("metadata.namespace"),
        label("l1"),
    ]);
    let name = prop::option::weighted(0.8, prop::sample::select(NAMES.as_slice()));
    (name, of).prop_map(|(name, of)| match name {
        Some(name) => associated(name, of),
        None => of,
    })
}

fn condition() -> impl Strategy<Value = Condition> {
    let operators = vec![
        Operator::Equal,
        Operator::NotEqual,
        Operator::Like,
        Operator::NotLike,
        Operator::In,
        Operator::NotIn,
        Operator::Less,
        Operator::AtLeast,
        Operator::Exists,
        Operator::Missing,
    ];
    (subject(), prop::sample::select(operators), text(), 0..3_i64).prop_map(
        |(subject, operator, text, number)| {
            let is_number = subject.to_string().ends_with("spec.integer");
            match operator {
                Operator::Exists | Operator::Missing => subject.is(operator, [""; 0]),
                Operator::Like | Operator::NotLike if is_number => {
                    subject.is(Operator::AtMost, [number])
                }
                operator if is_number => subject.is(operator, [number]),
                operator => subject.is(operator, [text]),
            }
        },
    )
}

pub(super) fn access() -> impl Strategy<Value = Access> {
    let names = prop::sample::subsequence(TEXTS.to_vec(), 0..4);
    let of = prop::sample::select(vec![None, Some("one"), Some("two")]);
    (prop::option::of(of), names).prop_map(|(of, names)| match of {
        Some(of) => Access::of_names(of, names).union(&Access::of_namespaces(["two"])),
        None => Access::everything(),
    })
}

pub(super) fn query() -> impl Strategy<Value = Query> {
    let filters = prop::collection::vec(prop::collection::vec(condition(), 1..3), 0..3);
    let orders = prop::collection::vec((subject(), any::<bool>()), 0..3);
    (filters, orders, prop::option::of(subject())).prop_map(|(filters, orders, by)| {
        let sorted = sorted(filters, orders);
        match by {
            Some(by) => sorted.summarize(by),
            None => sorted,
        }
    })
}

/// A cache of three kinds, and the rows that should be in it.
pub(super) struct Stage {
    reader: RefCell<Box<dyn Connection>>,
    /// What is in memory lasts as long as it is open.
    _writer: Writer,
    tables: Tables,
    rows: Vec<Row>,
    others: Vec<(Associated, Vec<Row>)>,
}

fn row(schema: &Schema, kind: usize, key: &ObjectKey, content: &Json) -> (Row, Vec<u8>) {
    let json = json!({"spec": content["spec"], "metadata": {
        "name": key.name(), "namespace": key.namespace(), "uid": format!("{kind} {}", key.name()),
        "resourceVersion": "1", "labels": content["labels"], "ownerReferences": content["owners"],
    }});
    let text = serde_json::to_vec(&json).unwrap();
    let object = CachedObject::new(RawObject::parse(&text, schema.gvk()).unwrap());
    (Row::read(schema, &object, &json).0, text)
}

impl Stage {
    pub(super) fn on(database: &Database, objects: &[Object]) -> Self {
        let schemas = [asked(), schema("Other"), schema("Place")];
        let mut writer = Writer::open(database).unwrap();
        let mut rows: [BTreeMap<ObjectKey, Row>; 3] = Default::default();
        let mut ops: [Vec<Op>; 3] = Default::default();
        for (kind, key, content) in objects {
            let kind = *kind;
            let (row, json) = row(&schemas[kind], kind, key, content);
            rows[kind].insert(key.clone(), row.clone());
            let is_initial = false;
            ops[kind].push(Op::Put {
                row,
                json,
                is_initial,
            });
        }
        let mut opened = Vec::new();
        for (schema, ops) in schemas.iter().zip(ops) {
            let (layout, sealed) = tables(database, schema, None);
            let tables = Tables {
                layout,
                schema: schema.clone(),
                sealed,
                namespaces: None,
                associated: Vec::new(),
                joined: Vec::new(),
            };
            writer.open_kind(&tables).unwrap();
            let reached = Some(Reached::default());
            writer
                .apply(&tables, &ops, reached.map(|reached| (reached, None)))
                .unwrap();
            writer.settle(&tables).unwrap();
            opened.push(tables);
        }
        let rows: Vec<Vec<Row>> = rows.map(|rows| rows.into_values().collect()).into();
        let mut others = Vec::new();
        let mut tables = opened[0].clone();
        for association in schemas[0].associations() {
            let of = schemas
                .iter()
                .position(|it| it.gvk() == association.kind())
                .unwrap();
            let other = Associated::resolve(association, &schemas[0], &schemas[of]).unwrap();
            tables.associated.push(other.clone());
            tables.joined.push(opened[of].layout.clone());
            others.push((other, rows[of].clone()));
        }
        Self {
            reader: RefCell::new(database.open_to_read().unwrap()),
            _writer: writer,
            tables,
            rows: rows[0].clone(),
            others,
        }
    }

    pub(super) fn plan(&self, query: &Query, view: &View) -> Result<Plan, crate::QueryError> {
        let scope = Scope {
            schema: &self.tables.schema,
            others: &self.tables.associated,
            view,
        };
        Plan::new(&scope, query)
    }

    pub(super) fn answer(&self, query: &Query, view: &View) -> Read {
        let plan = self.plan(query, view).unwrap();
        let mut reader = self.reader.borrow_mut();
        read(&mut **reader, &self.tables, &plan, None).unwrap()
    }

    /// Returns the keys that the query should find, and what it should count.
    fn expected(&self, plan: &Plan) -> (Vec<String>, BTreeMap<String, u64>) {
        let (schema, others) = (&self.tables.schema, Others(&self.others));
        let mut rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| plan.matches(schema, row, others))
            .collect();
        rows.sort_by(|one, other| plan.compare(schema, one, other, others));
        let mut counts = BTreeMap::new();
        for by in &plan.summaries {
            for row in &rows {
                let values: std::collections::BTreeSet<String> = others
                    .values(plan, row, &by.target)
                    .into_iter()
                    .map(|it| it.to_string())
                    .collect();
                for value in values {
                    *counts.entry(value).or_default() += 1;
                }
            }
        }
        (keys(&rows, |row| row.key.as_str()), counts)
    }
}

fn keys<T>(rows: &[T], key: impl Fn(&T) -> &str) -> Vec<String> {
    rows.iter().map(|row| key(row).to_owned()).collect()
}

fn found(answer: &Read) -> Vec<String> {
    keys(&answer.found, |found| &found.key)
}

/// Returns what a user may see, of the asked kind and of all three.
pub(super) fn view(own: Vec<Access>, others: Vec<Access>) -> View {
    let names = ["Thing", "Other", "Place"];
    let others = names.iter().zip(others);
    View {
        accesses: own.into(),
        others: others.map(|(name, access)| (kind(name), access)).collect(),
    }
}

/// Checks that all queries find and count what the rows say.
///
/// They are run as a whole and in parts. Queries that cannot be sorted are left out.
pub(super) fn agree(stage: &Stage, queries: &[Query], view: &View) -> Result<(), TestCaseError> {
    for query in queries {
        let plan = match stage.plan(query, view) {
            Ok(plan) => plan,
            Err(crate::QueryError::Unsortable { .. }) => continue,
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let (expected, counts) = stage.expected(&plan);
        let answer = stage.answer(query, view);
        prop_assert_eq!(found(&answer), expected.clone(), "{:?}", query);
        for summary in &answer.summaries {
            let counted: BTreeMap<_, _> = summary
                .iter()
                .map(|count| (count.value.clone(), count.objects))
                .collect();
            prop_assert_eq!(counted, counts.clone(), "{:?}", query);
        }
        let total = stage.answer(&query.clone().page(1, 1), view).total;
        prop_assert_eq!(total, Some(expected.len() as u64));
        let mut next = stage.answer(&query.clone().limit(2), view);
        let mut all = found(&next);
        while let Some(cursor) = &next.next {
            next = stage.answer(&query.clone().limit(2).after(cursor), view);
            all.extend(found(&next));
        }
        prop_assert_eq!(all, expected, "{:?}", query);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_query_by_associated_objects_finds_and_counts_what_the_rows_say(
        objects in prop::collection::vec(object(), 1..40),
        queries in prop::collection::vec(query(), 1..8),
        own in prop::collection::vec(access(), 0..2),
        others in prop::collection::vec(access(), 3),
    ) {
        let stage = Stage::on(&Database::in_memory(), &objects);
        agree(&stage, &queries, &view(own, others))?;
    }
}
