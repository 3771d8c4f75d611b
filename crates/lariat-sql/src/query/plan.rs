//! A query whose names and values are checked against a kind.

use std::sync::Arc;

use lariat_core::Gvk;

use super::filter::{AnyOf, Condition, Operator, Subject};
use super::{Namespaces, Part, Query};
use crate::access::Access;
use crate::field::{FieldType, Value, ValueError};
use crate::revision::Revision;
use crate::schema::{NAME, NAMESPACE, Schema};

/// How much a query can have of each: SQLite nests expressions a thousand deep, and takes 32,766 parameters.
const CONDITIONS: usize = 500;
const VALUES: usize = 20_000;
const ORDERS: usize = 20;

/// A query that is checked: what SQL is made of, and what rows are compared with.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// What may be seen: an object that all of them allow.
    pub(crate) accesses: Arc<[Access]>,
    /// Of each of these one has to hold.
    pub(crate) filters: Vec<Vec<Test>>,
    /// The namespaces that objects have to be in, or must not be in.
    pub(crate) namespaces: Option<Namespaces>,
    /// All words have to be found, the last one as the beginning of a word.
    pub(crate) words: Vec<String>,
    /// Namespace and name decide after these.
    pub(crate) orders: Vec<Order>,
    pub(crate) part: Part,
    pub(crate) summaries: Vec<Target>,
    /// Whether summaries count each namespace by itself.
    pub(crate) summarizes_namespaces: bool,
}

/// A condition on one field or label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) target: Target,
    pub(crate) check: Check,
    /// Whether the check must not hold; it does not hold without a value.
    pub(crate) is_negated: bool,
}

/// What a test or an order is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// The place of a field in the schema.
    Field(usize),
    Label(Arc<str>),
}

/// What is asked of the values: that one of them is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Check {
    Exists,
    OneOf(Vec<Value>),
    /// A text in lower case, as far as ASCII goes.
    HasPart(String),
    Compares(Comparison, Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// What objects are sorted by.
///
/// What has no value comes last, or first if it is descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) target: Target,
    pub(crate) is_descending: bool,
}

/// A query that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A field is not indexed.
    #[error("{kind} has no indexed field {field:?}; it has {}", known.join(", "))]
    UnknownField {
        /// The kind.
        kind: Gvk,
        /// What the query calls it.
        field: String,
        /// The names of the fields of the kind.
        known: Vec<String>,
    },
    /// A value is not of its field's type.
    #[error("the filter {subject} {operator}: {why}")]
    Value {
        /// The field or label.
        subject: String,
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        why: ValueError,
    },
    /// An operator does not fit its field, or the number of its values.
    #[error("the filter {subject} {operator} makes no sense: {why}")]
    Operator {
        /// The field or label.
        subject: String,
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// Objects cannot be sorted by a field with many values.
    #[error("{kind} cannot be sorted by {field}: it has many values in one object")]
    Unsortable {
        /// The kind.
        kind: Gvk,
        /// The field.
        field: String,
    },
    /// A group of conditions of which one has to hold is empty.
    #[error("a filter without a condition: leave it out, or add a condition")]
    EmptyFilter,
    /// The query has too many parts for one statement.
    #[error("the query has {found} {what}; {most} are possible: ask several queries")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are possible.
        most: usize,
    },
    /// A page, a size or a limit is zero.
    #[error("{what} is zero: {instead}")]
    Zero {
        /// What is zero.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// A search in a kind without searchable fields, or for nothing.
    #[error("{kind} cannot be searched: {why}")]
    Search {
        /// The kind.
        kind: Gvk,
        /// What is wrong.
        why: &'static str,
    },
    /// Namespaces are asked for by a label, and the cache has none, or the query is watched.
    #[error("namespaces cannot be found by the label {label}: {why}")]
    NamespaceLabel {
        /// The label.
        label: String,
        /// What to do.
        why: &'static str,
    },
    /// A cursor that was not made by this query.
    #[error("the cursor does not fit the query: {0}; ask for the first page again")]
    Cursor(&'static str),
    /// The cache is not at the revision, and did not get there in time.
    #[error("{kind} is at revision {at}, and did not reach {wanted} in time")]
    Behind {
        /// The kind.
        kind: Gvk,
        /// Where the cache is.
        at: Revision,
        /// Where it should be.
        wanted: Revision,
    },
}

impl Plan {
    /// Returns by how many keys objects are sorted: the orders of the query, namespace and name.
    pub(crate) fn keys(&self) -> usize {
        self.orders.len() + 2
    }

    /// Returns what objects are sorted by, and whether backwards: the orders of the query, namespace and name.
    pub(crate) fn targets(&self, schema: &Schema) -> Vec<(Target, bool)> {
        let place = |name| Target::Field(schema.place(name).unwrap_or_default());
        let orders = self.orders.iter();
        let orders = orders.map(|order| (order.target.clone(), order.is_descending));
        let last = [(place(NAMESPACE), false), (place(NAME), false)];
        orders.chain(last).collect()
    }

    /// Checks a query against the fields of a kind.
    pub(crate) fn new(
        schema: &Schema,
        query: &Query,
        accesses: &Arc<[Access]>,
    ) -> Result<Self, QueryError> {
        limit(query)?;
        let filters = query.filters.iter().map(|any| tests(schema, any));
        let orders = query
            .sort
            .iter()
            .map(|(subject, is_descending)| order(schema, subject, *is_descending));
        let summaries = query.summaries.iter().map(|by| target(schema, by));
        Ok(Self {
            accesses: Arc::clone(accesses),
            filters: filters.collect::<Result<_, _>>()?,
            namespaces: query.namespaces.clone(),
            words: words(schema, query.search.as_deref())?,
            orders: orders.collect::<Result<_, _>>()?,
            part: part(&query.part)?,
            summaries: summaries.collect::<Result<_, _>>()?,
            summarizes_namespaces: query.summarizes_namespaces,
        })
    }
}

/// Returns an error if the query has more parts than a statement can have.
fn limit(query: &Query) -> Result<(), QueryError> {
    let conditions = || query.filters.iter().flat_map(|any| &any.0);
    let counts = [
        ("conditions", conditions().count(), CONDITIONS),
        (
            "values",
            conditions().map(|each| each.values.len()).sum(),
            VALUES,
        ),
        ("orders", query.sort.len(), ORDERS),
        ("summaries", query.summaries.len(), ORDERS),
    ];
    match counts.into_iter().find(|(_, found, most)| found > most) {
        Some((what, found, most)) => Err(QueryError::TooLarge { what, found, most }),
        None => Ok(()),
    }
}

fn part(part: &Part) -> Result<Part, QueryError> {
    let zero = match part {
        Part::Page { number: 0, .. } => Some(("the page", "the first page is 1")),
        Part::Page { size: 0, .. } => Some(("the size of a page", "take 1 or more")),
        Part::After { limit: 0, .. } => Some(("the limit", "take 1 or more")),
        _ => None,
    };
    match zero {
        Some((what, instead)) => Err(QueryError::Zero { what, instead }),
        None => Ok(part.clone()),
    }
}

fn target(schema: &Schema, subject: &Subject) -> Result<Target, QueryError> {
    match subject {
        Subject::Label(key) => Ok(Target::Label(key.as_str().into())),
        Subject::Field(name) => match schema.place(name) {
            Some(place) => Ok(Target::Field(place)),
            None => Err(QueryError::UnknownField {
                kind: schema.gvk().clone(),
                field: name.clone(),
                known: schema
                    .fields()
                    .iter()
                    .map(|it| it.name().to_owned())
                    .collect(),
            }),
        },
    }
}

fn order(schema: &Schema, subject: &Subject, is_descending: bool) -> Result<Order, QueryError> {
    let target = target(schema, subject)?;
    if let Target::Field(place) = target
        && schema.fields()[place].is_many()
    {
        return Err(QueryError::Unsortable {
            kind: schema.gvk().clone(),
            field: subject.to_string(),
        });
    }
    Ok(Order {
        target,
        is_descending,
    })
}

fn tests(schema: &Schema, any: &AnyOf) -> Result<Vec<Test>, QueryError> {
    if any.0.is_empty() {
        return Err(QueryError::EmptyFilter);
    }
    any.0.iter().map(|each| test(schema, each)).collect()
}

fn test(schema: &Schema, condition: &Condition) -> Result<Test, QueryError> {
    let target = target(schema, &condition.subject)?;
    let (of, is_many) = match &target {
        Target::Label(_) => (FieldType::Text, false),
        Target::Field(place) => {
            let field = &schema.fields()[*place];
            (field.field_type(), field.is_many())
        }
    };
    Ok(Test {
        check: check(condition, of, is_many)?,
        target,
        is_negated: matches!(
            condition.operator,
            Operator::NotEqual
                | Operator::NotLike
                | Operator::NotIn
                | Operator::Missing
                | Operator::NotContains
        ),
    })
}

/// Checks the operator and the values of a condition on a field of a type.
fn check(condition: &Condition, of: FieldType, is_many: bool) -> Result<Check, QueryError> {
    let Condition {
        subject,
        operator,
        values,
    } = condition;
    let operator_error = |why| QueryError::Operator {
        subject: subject.to_string(),
        operator: operator.symbol(),
        why,
    };
    let parse = |text: &String| {
        of.parse(text).map_err(|why| QueryError::Value {
            subject: subject.to_string(),
            operator: operator.symbol(),
            why,
        })
    };
    let one = || match values.as_slice() {
        [value] => Ok(value),
        _ => Err(operator_error("it takes one value")),
    };
    let compares = |comparison| Ok(Check::Compares(comparison, parse(one()?)?));
    match operator {
        Operator::Exists | Operator::Missing if !values.is_empty() => {
            Err(operator_error("it takes no value"))
        }
        Operator::Exists | Operator::Missing => Ok(Check::Exists),
        Operator::In | Operator::NotIn => {
            let values: Result<_, _> = values.iter().map(parse).collect();
            Ok(Check::OneOf(values?))
        }
        Operator::Contains | Operator::NotContains if !is_many => Err(operator_error(
            "the field has one value; ~ searches in its text",
        )),
        Operator::Equal | Operator::NotEqual | Operator::Contains | Operator::NotContains => {
            Ok(Check::OneOf(vec![parse(one()?)?]))
        }
        Operator::Like | Operator::NotLike if !of.is_text() => {
            Err(operator_error("only texts have parts"))
        }
        Operator::Like | Operator::NotLike => Ok(Check::HasPart(one()?.to_ascii_lowercase())),
        Operator::Less => compares(Comparison::Less),
        Operator::AtMost => compares(Comparison::AtMost),
        Operator::Greater => compares(Comparison::Greater),
        Operator::AtLeast => compares(Comparison::AtLeast),
    }
}

fn words(schema: &Schema, search: Option<&str>) -> Result<Vec<String>, QueryError> {
    let Some(search) = search else {
        return Ok(Vec::new());
    };
    let words: Vec<String> = words_of(search).collect();
    let why = if !schema.fields().iter().any(|field| field.is_searchable()) {
        "none of its fields is searchable"
    } else if words.is_empty() {
        "there is no letter or digit in what is searched for"
    } else {
        return Ok(words);
    };
    Err(QueryError::Search {
        kind: schema.gvk().clone(),
        why,
    })
}

/// Returns the words of a text, in lower case: its runs of letters and digits.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
