//! Errors of queries.

use lariat_core::Gvk;

use crate::field::ValueError;
use crate::revision::Revision;
use crate::schema::UnknownField;

/// The error of a query that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A field is not indexed.
    #[error("{kind} has no indexed field {field:?}; it has {}", known.join(", "))]
    UnknownField {
        /// The kind.
        kind: Gvk,
        /// The name that the query uses.
        field: String,
        /// The names of the fields of the kind.
        known: Vec<String>,
    },
    /// A kind has no such association.
    #[error("{kind} has no association {association:?}; it has {}", or_none(known))]
    UnknownAssociation {
        /// The kind.
        kind: Gvk,
        /// The name that the query uses.
        association: String,
        /// The names of the associations of the kind.
        known: Vec<String>,
    },
    /// A query cannot use an association in this way.
    #[error("the association {association} cannot be used: {reason}")]
    Association {
        /// The name of the association.
        association: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// A value is not of the type of its field.
    #[error("the filter {subject} {operator}: {reason}")]
    Value {
        /// The field or label.
        subject: String,
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        reason: ValueError,
    },
    /// An operator does not fit its field, or the number of its values.
    #[error("the filter {subject} {operator} is invalid: {reason}")]
    Operator {
        /// The field or label.
        subject: String,
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// Objects cannot be sorted by a field with many values.
    #[error("{kind} cannot be sorted by {field}: it has many values in one object")]
    Unsortable {
        /// The kind.
        kind: Gvk,
        /// The field.
        field: String,
    },
    /// A filter has no conditions.
    #[error("a filter without a condition: leave it out, or add a condition")]
    EmptyFilter,
    /// The query has too many parts for one statement.
    #[error("the query has {found} {what}; at most {most} are allowed: split the query")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many are possible.
        most: usize,
    },
    /// A summary has more values than the query allows.
    #[error(
        "the summary by {subject} has more than {most} values: add conditions, or summarize by another field"
    )]
    ManyCounts {
        /// The field or label.
        subject: String,
        /// The number of values that the query [allows](crate::Query::most_counts).
        most: usize,
    },
    /// The summaries have more bytes than an answer may have.
    #[error(
        "the summaries have more than {most} bytes: add conditions, or summarize by another field"
    )]
    LargeCounts {
        /// The largest number of bytes.
        most: u64,
    },
    /// A page that must not end early has more bytes than an answer may have.
    #[error(
        "the page has more than {most} bytes, and only its first {fit} objects fit: request smaller pages, or use limit and continue, which end a page early"
    )]
    LargePage {
        /// The largest number of bytes.
        most: u64,
        /// How many objects would fit.
        fit: usize,
    },
    /// A page, a size or a limit is zero.
    #[error("{what} is zero: {instead}")]
    Zero {
        /// What is zero.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// A search in a kind without searchable fields, or without a word.
    #[error("{kind} cannot be searched: {reason}")]
    Search {
        /// The kind.
        kind: Gvk,
        /// What is wrong.
        reason: &'static str,
    },
    /// Namespaces cannot be selected by a label here.
    ///
    /// The cache has no namespaces in plain text, the kind is encrypted, the query is watched, or it is unknown which
    /// namespaces may be seen.
    #[error("namespaces cannot be found by the label {label}: {reason}")]
    NamespaceLabel {
        /// The label.
        label: String,
        /// What to do.
        reason: &'static str,
    },
    /// The cursor does not fit the query.
    #[error("the cursor does not fit the query: {0}; request the first page again")]
    Cursor(&'static str),
    /// The cache has not reached the revision in time.
    #[error("{kind} is at revision {at}, and did not reach {wanted} in time")]
    Behind {
        /// The kind.
        kind: Gvk,
        /// The revision of the cache.
        at: Revision,
        /// The revision that the query requires.
        wanted: Revision,
    },
}

fn or_none(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.join(", ")
}

impl From<UnknownField> for QueryError {
    fn from(UnknownField { kind, field, known }: UnknownField) -> Self {
        Self::UnknownField { kind, field, known }
    }
}
