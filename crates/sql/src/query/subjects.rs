//! The fields and labels in a query.

use std::collections::HashSet;

use super::{Query, Subject};

impl Query {
    /// Returns the fields and labels that the query uses, each once.
    ///
    /// The query filters, sorts or counts by them. A program that indexes fields on demand creates a
    /// [`Schema`](crate::Schema) from them.
    ///
    /// ```
    /// use lariat::sql::{Query, field, label};
    ///
    /// let query = Query::from_url("filter=spec.nodeName=a,metadata.labels[app]=web&sort=spec.nodeName")?;
    /// let subjects: Vec<_> = query.subjects().collect();
    /// assert_eq!(subjects, [&field("spec.nodeName"), &label("app")]);
    /// # Ok::<(), lariat::sql::UrlError>(())
    /// ```
    pub fn subjects(&self) -> impl Iterator<Item = &Subject> {
        let conditions = self.filters.iter().flat_map(|any_of| &any_of.0);
        let filtered = conditions.map(|condition| &condition.subject);
        let sorted = self.sort.iter().map(|(subject, _)| subject);
        let mut seen = HashSet::new();
        let all = filtered.chain(sorted).chain(&self.summaries);
        all.filter(move |subject| seen.insert(*subject))
    }

    /// Returns the namespaces that the query selects by name, if it selects no others.
    #[cfg(feature = "http")]
    pub(crate) fn named_namespaces(&self) -> Option<&[String]> {
        let namespaces = self.namespaces.as_ref();
        let named = namespaces.filter(|it| it.label.is_none() && !it.is_negated);
        named.map(|namespaces| namespaces.values.as_slice())
    }

    /// Returns the fields and labels that the query [counts](Self::summarize) by.
    ///
    /// They are in the order of the summaries of an answer.
    #[must_use]
    pub fn summarized(&self) -> &[Subject] {
        &self.summaries
    }
}
