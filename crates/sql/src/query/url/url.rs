//! Queries in the parameters of a URL.

use std::collections::BTreeMap;

use form_urlencoded::Serializer;
use percent_encoding::percent_decode_str;

use super::error::{PARAMETERS, UrlError, excerpt};
use super::read::Reader;
use super::write;
use crate::query::{Namespaces, PROJECT_LABEL, Part, Query};
use crate::revision::{Revision, RevisionError};

const NUMBER: &str = "a whole number from 1 to 18446744073709551615";

const FLAG: &str = "true or false";

const REVISION: &str =
    "a revision: a resource version, or what an answer returned, as 81734-1f0a93c4-512";

impl Query {
    /// Reads the URL form of a query.
    ///
    /// An example is `filter=spec.nodeName=node-1&sort=-metadata.name&pagesize=50`. The text is the part of a URL after
    /// the question mark, percent-encoded. Parameters are:
    ///
    /// | parameter | meaning |
    /// |---|---|
    /// | `filter` | conditions, separated by commas, of which at least one must hold; all filters must hold |
    /// | `sort` | names of fields or labels, separated by commas; a minus in front sorts backwards |
    /// | `search` | [words](Self::search) |
    /// | `namespaces`, `namespaces!` | names of [namespaces](Self::namespaces), or of those left out |
    /// | `projectsornamespaces`, `projectsornamespaces!` | [projects or namespaces](Self::projects_or_namespaces), or those left out |
    /// | `projectlabel` | the label that names a namespace's project; [`PROJECT_LABEL`] without it |
    /// | `page`, `pagesize` | one [page](Self::page); without `page` the first one, and without `pagesize` all objects, even if `page` is given |
    /// | `limit`, `continue` | a number of objects, and the [cursor](Self::after) to continue from; an empty `continue` is none |
    /// | `summary` | names of fields or labels to [count](Self::summarize) by, separated by commas |
    /// | `summaryonly` | `true` (or empty) [leaves the objects out](Self::only_counts); `false` does not |
    /// | `summarynamespaced` | `true` (or empty) [counts by namespace](Self::summarize_by_namespace), too |
    /// | `revision` | [at least](Self::at_least) this revision |
    ///
    /// Only `filter` and `sort` may be repeated. A condition is one of `field=value` (or `==`), `!=`, `~`, `!~`, `<`,
    /// `<=`, `>`, `>=`, `field in (a,b)`, `field notin (a,b)`, `field contains value` and `field notcontains value`.
    /// `field` alone requires that the field exists, `!field` that it does not. Spaces around operators are ignored,
    /// and so is the case of word operators.
    ///
    /// A value must be quoted with `'` or `"` if it begins with an operator, or contains commas, quotes, parentheses,
    /// spaces or control characters. Inside quotes, and only there, a backslash escapes the next character. Nothing
    /// after `=` and `!=` is the empty text; elsewhere it is `''`. A `+` in a URL is a space: write `%2B`. An empty
    /// list of namespaces is `()`.
    ///
    /// A field or label of [associated](crate::Association) objects is prefixed with the name of the association and a
    /// colon: `node:status.capacity.memory>64Gi`, `-node:metadata.labels[zone]`. If a field of the kind itself has such
    /// a name, it must be quoted.
    ///
    /// A label is `metadata.labels[app]` or `metadata.labels.app`. Brackets may contain operators and commas, and
    /// quoted text: `metadata.annotations['a=b,c']`. Other characters in a name need quotes around the whole name,
    /// which is then a field.
    ///
    /// ```
    /// use lariat::sql::{Query, field, label};
    ///
    /// let query = Query::from_url("filter=metadata.labels[app]=web,!spec.nodeName&sort=-metadata.name&pagesize=50")?;
    /// let either = label("app").equals("web").or(field("spec.nodeName").is(lariat::sql::Operator::Missing, [""; 0]));
    /// assert_eq!(query, Query::new().filter(either).sort_descending(field("metadata.name")).page(1, 50));
    /// # Ok::<(), lariat::sql::UrlError>(())
    /// ```
    /// # Errors
    ///
    /// Fails if a parameter is unknown or repeated, contradicts or lacks another one, or has an invalid value. The
    /// error contains the parameter, the position, what was found there and what is valid. Whether a kind has the
    /// fields is checked when the query is run.
    pub fn from_url(query: &str) -> Result<Self, UrlError> {
        let parameters = Parameters::read(query)?;
        let mut filters = Vec::with_capacity(parameters.filters.len());
        for text in &parameters.filters {
            filters.push(Reader::new("filter", text).any_of()?);
        }
        let mut sort = Vec::new();
        for text in &parameters.sorts {
            sort.append(&mut Reader::new("sort", text).orders()?);
        }
        let summaries = match parameters.get("summary") {
            Some(text) => Reader::new("summary", text).names()?,
            None => Vec::new(),
        };
        Ok(Self {
            filters,
            namespaces: parameters.namespaces()?,
            search: parameters.get("search").map(str::to_owned),
            sort,
            part: parameters.part()?,
            summaries,
            summarizes_namespaces: parameters.flag("summarynamespaced")?,
            most_counts: None,
            at_least: parameters.revision()?,
        })
    }

    /// Returns the URL form of the query, percent-encoded.
    ///
    /// [`from_url`](Self::from_url) parses it to an equal query. For a query that cannot be answered it fails instead:
    /// one with a page or a limit of zero, a filter without conditions, or a condition with too few or too many values.
    ///
    /// ```
    /// use lariat::sql::{Query, field};
    ///
    /// let query = Query::new().filter(field("metadata.name").equals("a b")).limit(20);
    /// assert_eq!(query.to_url(), "filter=metadata.name%3D%27a+b%27&limit=20");
    /// ```
    #[must_use]
    pub fn to_url(&self) -> String {
        let mut url = Serializer::new(String::new());
        for any in &self.filters {
            url.append_pair("filter", &write::any_of(any));
        }
        if !self.sort.is_empty() {
            url.append_pair("sort", &write::orders(&self.sort));
        }
        if let Some(words) = &self.search {
            url.append_pair("search", words);
        }
        if let Some(namespaces) = &self.namespaces {
            write_namespaces(&mut url, namespaces);
        }
        write_part(&mut url, &self.part);
        if !self.summaries.is_empty() {
            url.append_pair("summary", &write::names(&self.summaries));
        }
        if self.summarizes_namespaces {
            url.append_pair("summarynamespaced", "true");
        }
        if let Some(revision) = self.at_least {
            url.append_pair("revision", &revision.to_string());
        }
        url.finish()
    }
}

fn write_namespaces(url: &mut Serializer<'_, String>, namespaces: &Namespaces) {
    let Namespaces {
        values,
        label,
        is_negated,
    } = namespaces;
    let parameter = match (label, is_negated) {
        (None, false) => "namespaces",
        (None, true) => "namespaces!",
        (Some(_), false) => "projectsornamespaces",
        (Some(_), true) => "projectsornamespaces!",
    };
    url.append_pair(parameter, &write::values(values));
    // The default needs no parameter.
    if let Some(label) = label.as_ref().filter(|label| *label != PROJECT_LABEL) {
        url.append_pair("projectlabel", label);
    }
}

fn write_part(url: &mut Serializer<'_, String>, part: &Part) {
    match part {
        Part::All => {}
        Part::Page { number, size } => {
            url.append_pair("page", &number.to_string());
            url.append_pair("pagesize", &size.to_string());
        }
        Part::After { limit, cursor } => {
            url.append_pair("limit", &limit.to_string());
            if let Some(cursor) = cursor {
                url.append_pair("continue", cursor);
            }
        }
        Part::Nothing => {
            url.append_pair("summaryonly", "true");
        }
    }
}

/// The decoded parameters of a URL.
#[derive(Debug, Default)]
struct Parameters {
    filters: Vec<String>,
    sorts: Vec<String>,
    /// The parameters that occur at most once.
    single: BTreeMap<&'static str, String>,
}

impl Parameters {
    fn read(query: &str) -> Result<Self, UrlError> {
        // Otherwise bytes that are not UTF-8 would become another text.
        if let Err(error) = percent_decode_str(query).decode_utf8() {
            let valid = error.valid_up_to();
            return Err(UrlError::Encoding { valid });
        }
        let mut parameters = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let known = PARAMETERS.into_iter().find(|known| *known == name);
            let value = value.into_owned();
            match known {
                Some("filter") => parameters.filters.push(value),
                Some("sort") => parameters.sorts.push(value),
                Some(parameter) => parameters.once(parameter, value)?,
                None => {
                    let parameter = excerpt(&name);
                    return Err(UrlError::Unknown { parameter });
                }
            }
        }
        Ok(parameters)
    }

    fn once(&mut self, parameter: &'static str, value: String) -> Result<(), UrlError> {
        let second = excerpt(&value);
        match self.single.insert(parameter, value) {
            None => Ok(()),
            Some(first) => Err(UrlError::Repeated {
                parameter,
                first: excerpt(&first),
                second,
            }),
        }
    }

    fn get(&self, parameter: &'static str) -> Option<&str> {
        self.single.get(parameter).map(String::as_str)
    }

    /// Reads a whole number other than zero.
    fn number(&self, parameter: &'static str) -> Result<Option<u64>, UrlError> {
        let Some(text) = self.get(parameter) else {
            return Ok(None);
        };
        // `parse` alone accepts a leading plus.
        let wrong = text.find(|c: char| !c.is_ascii_digit());
        match text.parse() {
            Ok(number) if number > 0 && wrong.is_none() => Ok(Some(number)),
            _ => {
                let at = wrong.unwrap_or_default();
                Err(UrlError::syntax(parameter, text, at, NUMBER))
            }
        }
    }

    fn flag(&self, parameter: &'static str) -> Result<bool, UrlError> {
        match self.get(parameter) {
            None | Some("false") => Ok(false),
            Some("" | "true") => Ok(true),
            Some(text) => Err(UrlError::syntax(parameter, text, 0, FLAG)),
        }
    }

    fn revision(&self) -> Result<Option<Revision>, UrlError> {
        let revision = |text: &str| {
            text.parse()
                .map_err(|_: RevisionError| UrlError::syntax("revision", text, 0, REVISION))
        };
        self.get("revision").map(revision).transpose()
    }

    fn namespaces(&self) -> Result<Option<Namespaces>, UrlError> {
        const FORMS: [(&str, bool, bool); 4] = [
            ("namespaces", false, false),
            ("namespaces!", false, true),
            ("projectsornamespaces", true, false),
            ("projectsornamespaces!", true, true),
        ];
        let project = self.get("projectlabel");
        let mut found: Option<(&'static str, Namespaces)> = None;
        for (parameter, has_label, is_negated) in FORMS {
            let Some(text) = self.get(parameter) else {
                continue;
            };
            if let Some((one, _)) = found {
                let other = parameter;
                return Err(UrlError::Contradiction { one, other });
            }
            let namespaces = Namespaces {
                values: Reader::new(parameter, text).values()?,
                label: has_label.then(|| project.unwrap_or(PROJECT_LABEL).to_owned()),
                is_negated,
            };
            found = Some((parameter, namespaces));
        }
        let namespaces = found.map(|(_, namespaces)| namespaces);
        let is_labelled = namespaces.as_ref().is_some_and(|it| it.label.is_some());
        if project.is_some() && !is_labelled {
            return Err(UrlError::Needs {
                parameter: "projectlabel",
                needed: "projectsornamespaces",
            });
        }
        Ok(namespaces)
    }

    fn part(&self) -> Result<Part, UrlError> {
        let (number, size) = (self.number("page")?, self.number("pagesize")?);
        let limit = self.number("limit")?;
        // An empty cursor is the first page, as for Kubernetes.
        let cursor = self.get("continue").filter(|cursor| !cursor.is_empty());
        let is_summary_only = self.flag("summaryonly")?;
        let mut there = [
            ("page", number.is_some(), 0),
            ("pagesize", size.is_some(), 0),
            ("limit", limit.is_some(), 1),
            ("continue", cursor.is_some(), 1),
            ("summaryonly", is_summary_only, 2),
        ]
        .into_iter()
        .filter(|(_, is_there, _)| *is_there);
        // A page, a limit and a summary alone exclude each other; the last number tells which of them a parameter
        // belongs to.
        let first = there.next();
        if let Some((one, _, way)) = first
            && let Some((other, ..)) = there.find(|(.., other)| *other != way)
        {
            return Err(UrlError::Contradiction { one, other });
        }
        let cursor = cursor.map(str::to_owned);
        Ok(match (size, limit, cursor) {
            _ if is_summary_only => Part::Nothing,
            (Some(size), ..) => Part::Page {
                number: number.unwrap_or(1),
                size,
            },
            (None, Some(limit), cursor) => Part::After { limit, cursor },
            (None, None, Some(_)) => {
                return Err(UrlError::Needs {
                    parameter: "continue",
                    needed: "limit",
                });
            }
            (None, None, None) => Part::All,
        })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
