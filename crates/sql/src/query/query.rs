//! Queries of a kind, and how they are built.

use super::filter::{AnyOf, Subject};
use crate::revision::Revision;

/// The label that assigns namespaces to a project in Rancher.
pub const PROJECT_LABEL: &str = "field.cattle.io/projectId";

/// A query of a kind: which objects, in which order, and how many.
///
/// Names of fields and values are checked when the query is run. By default it returns all objects, sorted by namespace
/// and name, which also sort objects that are equal otherwise.
///
/// ```
/// use lariat::sql::{Query, field, label};
///
/// let query = Query::new()
///     .filter(field("spec.nodeName").equals("node-1"))
///     .filter(label("app").equals("web").or(label("app").equals("api")))
///     .sort_descending(field("metadata.creationTimestamp"))
///     .page(2, 50);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pub(crate) filters: Vec<AnyOf>,
    pub(crate) namespaces: Option<Namespaces>,
    pub(crate) search: Option<String>,
    pub(crate) sort: Vec<(Subject, bool)>,
    pub(crate) part: Part,
    pub(crate) summaries: Vec<Subject>,
    pub(crate) summarizes_namespaces: bool,
    pub(crate) most_counts: Option<usize>,
    pub(crate) at_least: Option<Revision>,
}

/// Which of the objects that meet the conditions are returned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Part {
    #[default]
    All,
    /// A page, numbered from one.
    Page { number: u64, size: u64 },
    /// The objects after a cursor, or the first ones.
    After { limit: u64, cursor: Option<String> },
    /// No objects, only counts.
    Nothing,
}

/// The namespaces that a query selects or excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespaces {
    /// Names of namespaces, or values of the label.
    pub(crate) values: Vec<String>,
    /// The label of namespaces to compare; `None` if the values are names only.
    pub(crate) label: Option<String>,
    pub(crate) is_negated: bool,
}

impl Query {
    /// Creates a query for all objects.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires that objects meet a condition, or one of several.
    ///
    /// All filters of a query must hold.
    #[must_use]
    pub fn filter(mut self, conditions: impl Into<AnyOf>) -> Self {
        self.filters.push(conditions.into());
        self
    }

    /// Requires that objects are in one of these namespaces.
    #[must_use]
    pub fn namespaces(mut self, names: impl IntoIterator<Item = impl ToString>) -> Self {
        self.namespaces = Some(Namespaces {
            values: names.into_iter().map(|name| name.to_string()).collect(),
            label: None,
            is_negated: false,
        });
        self
    }

    /// Requires that objects are in namespaces with these names or label values.
    ///
    /// Each value is the name of a namespace, or a value of the label that namespaces have. For projects of Rancher the
    /// label is [`PROJECT_LABEL`]. The cache needs the kind `Namespace` for this. With `is_negated` it selects the
    /// objects in all other namespaces.
    #[must_use]
    pub fn projects_or_namespaces(
        mut self,
        values: impl IntoIterator<Item = impl ToString>,
        label: &str,
        is_negated: bool,
    ) -> Self {
        self.namespaces = Some(Namespaces {
            values: values.into_iter().map(|value| value.to_string()).collect(),
            label: Some(label.to_owned()),
            is_negated,
        });
        self
    }

    /// Requires that objects have all these words in their searchable fields.
    ///
    /// See [`Field::searchable`](crate::Field::searchable). Words are runs of letters and digits; case does not count.
    /// The last word may be the beginning of one.
    ///
    /// ```
    /// use lariat::sql::Query;
    ///
    /// let query = Query::new().search("web ngi").limit(20);
    /// # let _ = query;
    /// ```
    #[must_use]
    pub fn search(mut self, words: &str) -> Self {
        self.search = Some(words.to_owned());
        self
    }

    /// Sorts by a field or label; objects without a value come last.
    ///
    /// It sorts objects that are equal by the orders added before.
    #[must_use]
    pub fn sort(mut self, by: Subject) -> Self {
        self.sort.push((by, false));
        self
    }

    /// Sorts backwards by a field or label; objects without a value come first.
    ///
    /// It sorts objects that are equal by the orders added before.
    #[must_use]
    pub fn sort_descending(mut self, by: Subject) -> Self {
        self.sort.push((by, true));
        self
    }

    /// Returns one page of this size; the first page is 1.
    #[must_use]
    pub fn page(mut self, number: u64, size: u64) -> Self {
        self.part = Part::Page { number, size };
        self
    }

    /// Returns at most this many objects, from the first one on.
    ///
    /// The answer has a cursor for the objects that [follow](Self::after).
    #[must_use]
    pub fn limit(mut self, limit: u64) -> Self {
        let cursor = match self.part {
            Part::After { cursor, .. } => cursor,
            _ => None,
        };
        self.part = Part::After { limit, cursor };
        self
    }

    /// Returns the objects that follow an answer with this cursor.
    ///
    /// The [limit](Self::limit) is the number of objects. The query must be the same otherwise. Objects that are
    /// created or deleted meanwhile neither repeat nor hide others.
    ///
    /// ```no_run
    /// use lariat::sql::{Query, SqlKind};
    ///
    /// # async fn example(pods: &SqlKind) -> Result<(), lariat::sql::SqlError> {
    /// let mut query = Query::new().limit(100);
    /// loop {
    ///     let answer = pods.query(&query).await?;
    ///     println!("{} pods", answer.objects.len());
    ///     let Some(cursor) = answer.next else { break };
    ///     query = query.after(&cursor);
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn after(mut self, cursor: &str) -> Self {
        let limit = match self.part {
            Part::After { limit, .. } => limit,
            // A limit of zero is refused when the query is run, so a forgotten one is an error.
            _ => 0,
        };
        let cursor = Some(cursor.to_owned());
        self.part = Part::After { limit, cursor };
        self
    }

    /// Returns no objects, only counts.
    #[must_use]
    pub fn only_counts(mut self) -> Self {
        self.part = Part::Nothing;
        self
    }

    /// Counts the objects that meet the conditions by the values of a field or label.
    ///
    /// ```
    /// use lariat::sql::{Query, field, label};
    ///
    /// let query = Query::new().summarize(field("spec.nodeName")).summarize(label("app")).only_counts();
    /// # let _ = query;
    /// ```
    #[must_use]
    pub fn summarize(mut self, by: Subject) -> Self {
        self.summaries.push(by);
        self
    }

    /// Sets how many values a summary may have (default: any number).
    ///
    /// A summary with more values is an error.
    #[must_use]
    pub fn most_counts(mut self, most: usize) -> Self {
        self.most_counts = Some(most);
        self
    }

    /// Counts summaries by namespace as well.
    #[must_use]
    pub fn summarize_by_namespace(mut self) -> Self {
        self.summarizes_namespaces = true;
        self
    }

    /// Returns whether the answer depends on objects of other kinds.
    #[cfg(feature = "http")]
    pub(crate) fn asks_other_kinds(&self) -> bool {
        let namespaces = self.namespaces.as_ref();
        let by_label = namespaces.is_some_and(|namespaces| namespaces.label.is_some());
        by_label || self.associations().next().is_some()
    }

    /// Returns the names of the associations that the query uses.
    #[cfg(feature = "http")]
    pub(crate) fn associations(&self) -> impl Iterator<Item = &str> {
        let conditions = self.filters.iter().flat_map(|any| &any.0);
        let subjects = conditions
            .map(|condition| &condition.subject)
            .chain(self.sort.iter().map(|(by, _)| by))
            .chain(&self.summaries);
        subjects.filter_map(|subject| match subject {
            Subject::Associated { association, .. } => Some(association.as_str()),
            _ => None,
        })
    }

    /// Waits until the cache has reached at least a revision.
    ///
    /// A query after a write of an object can pass the object's resource version. See
    /// [`SqlCacheBuilder::wait_timeout`](crate::SqlCacheBuilder::wait_timeout) for how long it waits.
    ///
    /// ```
    /// use lariat::sql::Query;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let query = Query::new().at_least("81734".parse()?);
    /// # let _ = query;
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    #[must_use]
    pub fn at_least(mut self, revision: Revision) -> Self {
        self.at_least = Some(revision);
        self
    }
}
