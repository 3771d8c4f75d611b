//! The arguments of `lariat query`.

use std::path::PathBuf;
use std::time::Duration;

use form_urlencoded::Serializer;
use lariat_sql::{FieldType, Query};
use lexopt::prelude::*;

use crate::arguments::{Command, UsageError, path, text, unknown};
use crate::help;

/// How long reading may take by default.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How many objects a page has by default.
const PAGE_SIZE: &str = "50";

/// The types of fields, by the names they are given by.
const TYPES: [(&str, FieldType); 8] = [
    ("text", FieldType::Text),
    ("natural", FieldType::Natural),
    ("integer", FieldType::Integer),
    ("real", FieldType::Real),
    ("boolean", FieldType::Boolean),
    ("quantity", FieldType::Quantity),
    ("time", FieldType::Time),
    ("ip", FieldType::Ip),
];

/// What to ask, and how to show the answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) kind: String,
    pub(crate) query: Query,
    pub(crate) has_search: bool,
    pub(crate) namespace: Option<String>,
    pub(crate) is_everywhere: bool,
    /// Names of fields; none for what is usual.
    pub(crate) columns: Vec<String>,
    /// The types that are given.
    pub(crate) types: Vec<(String, FieldType)>,
    pub(crate) output: Output,
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Wide,
    Name,
    Json,
}

/// What is read before the query is made of it.
#[derive(Default)]
struct Words {
    kind: Option<String>,
    filters: Vec<String>,
    /// Parameters of the query, by their names in a URL.
    parameters: Vec<(&'static str, String)>,
    namespace: Option<String>,
    is_everywhere: bool,
    columns: Vec<String>,
    types: Vec<(String, FieldType)>,
    output: Option<Output>,
    kubeconfig: Option<PathBuf>,
    timeout: Option<Duration>,
}

/// Reads the arguments behind `lariat query`.
pub(crate) fn parse(parser: &mut lexopt::Parser) -> Result<Command, UsageError> {
    let mut words = Words::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(Command::Print(help::QUERY.to_owned())),
            Short('A') | Long("all-namespaces") => words.is_everywhere = true,
            Short('n') | Long("namespace") => words.namespace = Some(text(parser, "namespace")?),
            Short('o') | Long("output") => words.output = Some(output(&text(parser, "output")?)?),
            Long("columns") => words.columns.extend(names(&text(parser, "columns")?)),
            Long("field") => words.types.push(field(&text(parser, "field")?)?),
            Long("kubeconfig") => words.kubeconfig = Some(path(parser, "kubeconfig")?),
            Long("timeout") => words.timeout = Some(seconds(&text(parser, "timeout")?)?),
            Long("sort") => words.parameter("sort", "sort", parser)?,
            Long("page") => words.parameter("page", "page", parser)?,
            Long("page-size") => words.parameter("page-size", "pagesize", parser)?,
            Long("summary") => words.parameter("summary", "summary", parser)?,
            Long("search") => words.parameter("search", "search", parser)?,
            Value(value) => words.value(value)?,
            other => return Err(unknown(&other, "lariat query --help")),
        }
    }
    words
        .options()
        .map(|options| Command::Query(Box::new(options)))
}

impl Words {
    fn value(&mut self, value: std::ffi::OsString) -> Result<(), UsageError> {
        let value = value.into_string();
        let value = value.map_err(|bad| UsageError(format!("the argument {bad:?} is no text")))?;
        match self.kind {
            None => self.kind = Some(value),
            Some(_) => self.filters.push(value),
        }
        Ok(())
    }

    /// Takes the value of an option that is a parameter of the query.
    fn parameter(
        &mut self,
        option: &str,
        name: &'static str,
        parser: &mut lexopt::Parser,
    ) -> Result<(), UsageError> {
        let value = text(parser, option)?;
        if self.parameters.iter().any(|(other, _)| *other == name) {
            return Err(UsageError(format!(
                "--{option} is given twice; give it once, with commas between its values"
            )));
        }
        self.parameters.push((name, value));
        Ok(())
    }

    fn options(self) -> Result<Options, UsageError> {
        let query = self.query()?;
        let kind = self.kind.ok_or_else(|| {
            UsageError("no kind is given; try `lariat query pods --all-namespaces`".to_owned())
        })?;
        if self.is_everywhere && self.namespace.is_some() {
            return Err(UsageError(
                "--namespace and --all-namespaces exclude each other".to_owned(),
            ));
        }
        Ok(Options {
            kind,
            query,
            has_search: self.parameters.iter().any(|(name, _)| *name == "search"),
            namespace: self.namespace,
            is_everywhere: self.is_everywhere,
            columns: self.columns,
            types: self.types,
            output: self.output.unwrap_or(Output::Table),
            kubeconfig: self.kubeconfig,
            timeout: self.timeout.unwrap_or(TIMEOUT),
        })
    }

    /// Makes the query from its URL form, which has the same filters and names.
    fn query(&self) -> Result<Query, UsageError> {
        let has = |name| self.parameters.iter().any(|(other, _)| *other == name);
        let mut url = Serializer::new(String::new());
        for filter in &self.filters {
            url.append_pair("filter", filter);
        }
        url.extend_pairs(&self.parameters);
        if has("page") && !has("pagesize") {
            url.append_pair("pagesize", PAGE_SIZE);
        }
        if has("summary") && !has("page") && !has("pagesize") {
            url.append_pair("summaryonly", "true");
        }
        let query = Query::from_url(&url.finish());
        query.map_err(|error| {
            let text = error
                .to_string()
                .replace("parameter pagesize", "option --page-size");
            UsageError(
                text.replace("parameter ", "option --")
                    .replace("--filter", "FILTER"),
            )
        })
    }
}

fn names(text: &str) -> impl Iterator<Item = String> + '_ {
    let names = text.split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned)
}

fn output(text: &str) -> Result<Output, UsageError> {
    Ok(match text {
        "table" => Output::Table,
        "wide" => Output::Wide,
        "name" => Output::Name,
        "json" => Output::Json,
        other => {
            return Err(UsageError(format!(
                "--output {other:?} is none of table, wide, name and json"
            )));
        }
    })
}

/// Reads `path:type`.
fn field(text: &str) -> Result<(String, FieldType), UsageError> {
    let of = |name: &str| TYPES.iter().find(|(known, _)| *known == name);
    let read = text.rsplit_once(':');
    let read = read.and_then(|(path, name)| Some((path.to_owned(), of(name)?.1)));
    read.filter(|(path, _)| !path.is_empty()).ok_or_else(|| {
        let known = TYPES.map(|(name, _)| name).join(", ");
        UsageError(format!(
            "--field {text:?} is no FIELD:TYPE such as status.podIP:ip; the types are {known}"
        ))
    })
}

fn seconds(text: &str) -> Result<Duration, UsageError> {
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err(UsageError(format!(
            "--timeout {text:?} is no number of seconds above 0"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use lariat_sql::{field as of, label};

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options, String> {
        let mut parser = lexopt::Parser::from_args(arguments);
        match parse(&mut parser) {
            Ok(Command::Query(options)) => Ok(*options),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_question_is_made_of_arguments_in_any_order() {
        let options = parsed(&[
            "pods",
            "-A",
            "status.phase=Running,metadata.labels[app]~web",
            "--sort=spec.nodeName,-metadata.name",
            "spec.nodeName",
            "--page",
            "2",
            "-o",
            "json",
            "--columns",
            "status.podIP, spec.nodeName",
            "--field",
            "metadata.annotations[a:b]:ip",
        ]);
        let options = options.unwrap();
        let either = of("status.phase")
            .equals("Running")
            .or(label("app").like("web"));
        let query = Query::new()
            .filter(either)
            .filter(of("spec.nodeName").exists());
        let query = query
            .sort(of("spec.nodeName"))
            .sort_descending(of("metadata.name"));
        assert_eq!(options.query, query.page(2, 50));
        assert!(options.is_everywhere);
        assert_eq!(options.columns, ["status.podIP", "spec.nodeName"]);
        let typed = ("metadata.annotations[a:b]".to_owned(), FieldType::Ip);
        assert_eq!(options.types, [typed]);
        assert_eq!(options.output, Output::Json);
    }

    #[test]
    fn a_summary_without_a_page_is_all_that_is_shown() {
        let query = |arguments: &[&str]| parsed(arguments).unwrap().query;
        let counted = Query::new().summarize(of("a.b"));
        let only = query(&["pods", "--summary", "a.b"]);
        assert_eq!(only, counted.clone().only_counts());
        let both = query(&["pods", "--summary", "a.b", "--page-size", "7"]);
        assert_eq!(both, counted.page(1, 7));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (arguments, expected) in [
            (&[][..], "no kind is given"),
            (
                &["pods", "-A", "-n", "a"],
                "--namespace and --all-namespaces",
            ),
            (
                &["pods", "-o", "yaml"],
                "none of table, wide, name and json",
            ),
            (
                &["pods", "--field", "a:number"],
                "the types are text, natural",
            ),
            (&["pods", "--field", ":ip"], "FIELD:TYPE"),
            (&["pods", "--timeout", "0"], "--timeout"),
            (&["pods", "--page", "0"], "option --page "),
            (
                &["pods", "--page", "1", "--page-size", "x"],
                "option --page-size ",
            ),
            (&["pods", "a=", " b=(", "--sort", "a,"], "FILTER"),
            (
                &["pods", "--sort", "a", "--sort", "b"],
                "--sort is given twice",
            ),
            (
                &["pods", "--bogus"],
                "unknown option --bogus; `lariat query --help`",
            ),
            (&["pods", "-x"], "unknown option -x"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments:?}: {error}");
        }
    }
}
