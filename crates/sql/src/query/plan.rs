//! Plans: queries whose names and values are checked against a kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use lariat_core::Gvk;
use lariat_seal::Context;

use super::error::QueryError;
use super::filter::{AnyOf, Condition, Operator, Subject};
use super::scope::Scope;
use super::shape::shape;
use super::{Namespaces, Part, Query};
use crate::access::Access;
use crate::field::{FieldType, Value};
use crate::schema::{NAME, NAMESPACE, Schema};

/// The largest number of conditions of a query.
///
/// This and the following limits follow from SQLite, which nests expressions up to a thousand deep and accepts 32,766
/// parameters.
const CONDITIONS: usize = 500;
const VALUES: usize = 20_000;
const ORDERS: usize = 20;
const WORDS: usize = 50;

/// A checked query, from which SQL is generated and with which rows are compared.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The accesses; all of them must allow an object.
    pub(crate) accesses: Arc<[Access]>,
    /// The accesses for the kind of each association of the schema.
    ///
    /// All accesses of its kind must allow an associated object.
    pub(crate) associated: Arc<[Vec<Access>]>,
    /// Of each inner list, at least one test must hold.
    pub(crate) filters: Vec<Vec<Test>>,
    /// The namespaces that objects must be in, or must not be in.
    pub(crate) namespaces: Option<Namespaces>,
    /// The accesses for namespaces that are selected by a label.
    ///
    /// All of them must allow a namespace.
    pub(crate) labelled: Vec<Access>,
    /// Words that must all occur, the last one as the beginning of a word.
    pub(crate) words: Vec<String>,
    /// The orders of the query; namespace and name follow.
    pub(crate) orders: Vec<Order>,
    pub(crate) part: Part,
    pub(crate) summaries: Vec<Summary>,
    /// Whether summaries count each namespace separately.
    pub(crate) summarizes_namespaces: bool,
    /// The largest number of values of a summary; `None` for any number.
    pub(crate) most_counts: Option<usize>,
    /// Other kinds that the answer depends on.
    pub(crate) others: BTreeSet<Gvk>,
    /// Differs between queries that select other objects, or in another order.
    ///
    /// See [`Cursor`](super::Cursor).
    pub(crate) shape: Context,
}

/// What objects are counted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) subject: String,
    pub(crate) target: Target,
    /// The type of the values.
    pub(crate) of: FieldType,
}

impl Summary {
    /// Fails if there are more counts than the query allows.
    pub(crate) fn check(&self, counts: usize, most: usize) -> Result<(), QueryError> {
        if counts <= most {
            return Ok(());
        }
        let subject = self.subject.clone();
        Err(QueryError::ManyCounts { subject, most })
    }
}

/// A condition on one field or label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) target: Target,
    pub(crate) check: Check,
    /// Whether the check must fail; it fails without a value.
    pub(crate) is_negated: bool,
}

/// The target of a test or an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    /// The position of a field in the schema.
    Field(usize),
    Label(Arc<str>),
    /// The position of an association in the schema, and a field or label of its kind.
    Associated(usize, Box<Target>),
}

/// A check that one of the values must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Check {
    Exists,
    OneOf(Vec<Value>),
    /// A text with its ASCII letters in lower case.
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

/// An order.
///
/// Objects without a value come last, or first if it is descending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) target: Target,
    /// The type of the values.
    pub(crate) of: FieldType,
    pub(crate) is_descending: bool,
}

impl Plan {
    /// Returns whether some objects of the kind may be hidden from the user.
    pub(crate) fn is_restricted(&self) -> bool {
        self.accesses.iter().any(|access| !access.is_everything())
    }

    /// Returns the sort keys, and whether each is descending.
    ///
    /// These are the orders of the query, then namespace and name.
    pub(crate) fn targets(&self, schema: &Schema) -> Vec<(Target, bool)> {
        let place = |name| Target::Field(schema.place(name).unwrap_or_default());
        let orders = self
            .orders
            .iter()
            .map(|order| (order.target.clone(), order.is_descending));
        // Makes the order total, so that pages neither repeat nor skip objects.
        let last = [(place(NAMESPACE), false), (place(NAME), false)];
        orders.chain(last).collect()
    }

    /// Returns the name of an association that conditions use, if there is one.
    pub(crate) fn conditional(&self, schema: &Schema) -> Option<String> {
        let mut tests = self.filters.iter().flatten();
        tests.find_map(|test| match test.target {
            Target::Associated(place, _) => Some(schema.associations()[place].name().to_owned()),
            _ => None,
        })
    }

    /// Checks a query against the fields of a kind and of those associated with it.
    pub(crate) fn new(scope: &Scope<'_>, query: &Query) -> Result<Self, QueryError> {
        // First: the checks below are linear, and the text may come from anyone.
        limit(query)?;
        let filters: Vec<Vec<Test>> = query
            .filters
            .iter()
            .map(|any| tests(scope, any))
            .collect::<Result<_, _>>()?;
        let orders: Vec<Order> = query
            .sort
            .iter()
            .map(|(subject, is_descending)| order(scope, subject, *is_descending))
            .collect::<Result<_, _>>()?;
        let summaries: Vec<Summary> = query
            .summaries
            .iter()
            .map(|by| summary(scope, by))
            .collect::<Result<_, _>>()?;
        let targets = filters
            .iter()
            .flatten()
            .map(|test| &test.target)
            .chain(orders.iter().map(|order| &order.target))
            .chain(summaries.iter().map(|summary| &summary.target));
        let mut others: BTreeSet<Gvk> = targets
            .filter_map(|target| match target {
                Target::Associated(place, _) => Some(scope.others[*place].schema.gvk().clone()),
                _ => None,
            })
            .collect();
        let namespaces = query.namespaces.as_ref();
        let label = namespaces.and_then(|namespaces| namespaces.label.as_deref());
        // Such a query reads the labels of namespaces, so the cache must contain namespaces too.
        let labelled = label.map(|label| scope.namespaces(label)).transpose()?;
        if labelled.is_some() {
            others.insert(Gvk::new("", "v1", "Namespace"));
        }
        Ok(Self {
            accesses: Arc::clone(&scope.view.accesses),
            associated: scope.accesses(),
            words: words(scope.schema, query.search.as_deref())?,
            part: part(&query.part)?,
            namespaces: query.namespaces.clone(),
            labelled: labelled.unwrap_or_default(),
            most_counts: query.most_counts,
            summarizes_namespaces: query.summarizes_namespaces,
            shape: shape(scope.schema, query, orders.iter().map(|order| order.of)),
            filters,
            orders,
            summaries,
            others,
        })
    }
}

/// Fails if the query has more parts than a statement can have.
fn limit(query: &Query) -> Result<(), QueryError> {
    let conditions = || query.filters.iter().flat_map(|any| &any.0);
    let words = query
        .search
        .as_deref()
        .map_or(0, |search| words_of(search).count());
    let counts = [
        ("conditions", conditions().count(), CONDITIONS),
        (
            "values",
            conditions().map(|each| each.values.len()).sum(),
            VALUES,
        ),
        ("orders", query.sort.len(), ORDERS),
        ("words", words, WORDS),
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

/// A resolved subject.
struct Found {
    target: Target,
    of: FieldType,
    is_many: bool,
}

fn found(scope: &Scope<'_>, subject: &Subject) -> Result<Found, QueryError> {
    let Subject::Associated { association, of } = subject else {
        return own(scope.schema, subject);
    };
    let (place, other) = scope.association(association)?;
    let found = own(&other.schema, of)?;
    Ok(Found {
        target: Target::Associated(place, Box::new(found.target)),
        // Several objects, or several values of one, are alike: one of them must meet a condition.
        is_many: found.is_many || !other.is_one,
        ..found
    })
}

/// Finds a field or label of the kind itself.
fn own(schema: &Schema, subject: &Subject) -> Result<Found, QueryError> {
    match subject {
        Subject::Label(key) => Ok(Found {
            target: Target::Label(key.as_str().into()),
            of: FieldType::Text,
            is_many: false,
        }),
        Subject::Field(name) => {
            let place = schema.place(name).ok_or_else(|| schema.unknown(name))?;
            let field = &schema.fields()[place];
            Ok(Found {
                target: Target::Field(place),
                of: field.field_type(),
                is_many: field.is_many(),
            })
        }
        Subject::Associated { association, .. } => Err(QueryError::Association {
            association: association.clone(),
            reason: "it follows another association, and a query can follow only one at a time"
                .to_owned(),
        }),
    }
}

fn order(scope: &Scope<'_>, subject: &Subject, is_descending: bool) -> Result<Order, QueryError> {
    let found = found(scope, subject)?;
    if found.is_many {
        return Err(QueryError::Unsortable {
            kind: scope.schema.gvk().clone(),
            field: subject.to_string(),
        });
    }
    Ok(Order {
        target: found.target,
        of: found.of,
        is_descending,
    })
}

fn summary(scope: &Scope<'_>, by: &Subject) -> Result<Summary, QueryError> {
    let Found { target, of, .. } = found(scope, by)?;
    let subject = by.to_string();
    Ok(Summary {
        subject,
        target,
        of,
    })
}

fn tests(scope: &Scope<'_>, any: &AnyOf) -> Result<Vec<Test>, QueryError> {
    if any.0.is_empty() {
        return Err(QueryError::EmptyFilter);
    }
    any.0.iter().map(|each| test(scope, each)).collect()
}

fn test(scope: &Scope<'_>, condition: &Condition) -> Result<Test, QueryError> {
    let found = found(scope, &condition.subject)?;
    Ok(Test {
        check: check(condition, found.of, found.is_many)?,
        target: found.target,
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
    let operator_error = |reason| QueryError::Operator {
        subject: subject.to_string(),
        operator: operator.symbol(),
        reason,
    };
    let parse = |text: &String| {
        of.parse(text).map_err(|reason| QueryError::Value {
            subject: subject.to_string(),
            operator: operator.symbol(),
            reason,
        })
    };
    let one = || match values.as_slice() {
        [value] => Ok(value),
        _ => Err(operator_error("it takes one value")),
    };
    let compares = |comparison| Ok(Check::Compares(comparison, parse(one()?)?));
    match operator {
        // Values without a meaning are refused: the client may expect them to have one.
        Operator::Exists | Operator::Missing if !values.is_empty() => {
            Err(operator_error("it takes no value"))
        }
        Operator::Exists | Operator::Missing => Ok(Check::Exists),
        Operator::In | Operator::NotIn => {
            let values: Result<_, _> = values.iter().map(parse).collect();
            Ok(Check::OneOf(values?))
        }
        Operator::Contains | Operator::NotContains if !is_many => Err(operator_error(
            "the field has a single value; use ~ to search in its text",
        )),
        // Negation is applied to the whole test, so both forms have the same check.
        Operator::Equal | Operator::NotEqual | Operator::Contains | Operator::NotContains => {
            Ok(Check::OneOf(vec![parse(one()?)?]))
        }
        Operator::Like | Operator::NotLike if !of.is_text() => {
            Err(operator_error("it applies to texts only"))
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
    let reason = if !schema.fields().iter().any(|field| field.is_searchable()) {
        "none of its fields is searchable"
    } else if words.is_empty() {
        "the search text has no letter or digit"
    } else {
        return Ok(words);
    };
    Err(QueryError::Search {
        kind: schema.gvk().clone(),
        reason,
    })
}

/// Returns the words of a text in lower case: its runs of letters and digits.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
