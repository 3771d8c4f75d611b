//! The options of `lariat query`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, ValueEnum, ValueHint};
use form_urlencoded::Serializer;
use lariat_sql::{FieldType, Query};

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

const EXAMPLES: &str = "\
Examples:
  lariat query pods -A status.phase=Running --sort spec.nodeName,-metadata.name --page 1
  lariat query pods -A --summary spec.nodeName";

/// The query, and how to show the answer.
#[derive(Debug, PartialEq, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The kind, its plural or a short name: pods, po, Deployment.
    ///
    /// Add the group if several groups have the kind: deployments.apps.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) kind: String,
    /// A condition, such as status.phase=Running.
    ///
    /// A filter is field=value, or has another operator: != ~ !~ (contains a text, or not) < <= > >=, 'field in (a,b)',
    /// 'field notin (a,b)', 'field contains a'; field or !field: it exists or not. Filters that are separated by commas
    /// are alternatives. Quote values that contain spaces or commas: name='a b'.
    ///
    /// A field is a path, as spec.nodeName, spec.containers[*].image or metadata.labels[app]; its type comes from the
    /// schemas of the server.
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// Read this namespace [default: the one in the kubeconfig].
    #[arg(short, long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new(), help_heading = "Cluster")]
    #[arg(conflicts_with = "is_everywhere")]
    pub(crate) namespace: Option<String>,
    /// Read all namespaces.
    #[arg(short = 'A', long = "all-namespaces", help_heading = "Cluster")]
    pub(crate) is_everywhere: bool,
    /// Use this kubeconfig.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Cluster")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The timeout for reading the objects.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds, help_heading = "Cluster")]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    parameters: Parameters,
    /// The fields to show [default: those of kubectl get].
    #[arg(long = "columns", value_name = "FIELD,...", help_heading = "Output")]
    #[arg(value_parser = names, action = ArgAction::Append)]
    columns: Vec<Names>,
    /// The type of a field, such as status.podIP:ip; may be repeated.
    ///
    /// The types are text, natural (pod-9 before pod-10), integer, real, boolean, quantity, time and ip.
    #[arg(long = "field", value_name = "FIELD:TYPE", value_parser = field, help_heading = "Output")]
    pub(crate) types: Vec<(String, FieldType)>,
    /// The output format.
    #[arg(short, long, value_name = "FORM", value_enum, default_value_t = Output::Table, help_heading = "Output")]
    pub(crate) output: Output,
    /// The query that the arguments describe.
    #[arg(skip)]
    pub(crate) query: Query,
}

/// The options that are parameters of the query.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Query")]
struct Parameters {
    /// Sort by fields; a minus in front sorts backwards.
    #[arg(long, value_name = "FIELD,...", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Show one page, with the total.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    page: Option<String>,
    /// The number of objects in a page [default: 50 with --page, else all].
    #[arg(
        long,
        visible_alias = "limit",
        value_name = "N",
        allow_hyphen_values = true
    )]
    page_size: Option<String>,
    /// Count objects by the values of fields.
    ///
    /// The objects themselves are shown with --page or --page-size only.
    #[arg(long, value_name = "FIELD,...")]
    summary: Option<String>,
    /// Show objects that contain all these words.
    ///
    /// Names, labels and named text fields are searched; the last word may be a prefix.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    search: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Table,
    Wide,
    Name,
    Json,
}

/// Names of fields that were given together.
#[derive(Debug, Clone, PartialEq)]
struct Names(Vec<String>);

impl Parameters {
    /// Returns those that are given, by their names in a URL.
    fn given(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = [
            ("sort", &self.sort),
            ("page", &self.page),
            ("pagesize", &self.page_size),
            ("summary", &self.summary),
            ("search", &self.search),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }
}

impl Options {
    /// Returns the names of fields to show; none for what is usual.
    pub(super) fn columns(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().flat_map(|names| &names.0)
    }

    pub(super) fn has_search(&self) -> bool {
        self.parameters.search.is_some()
    }

    /// Makes the query from its URL form, which has the same filters and names.
    ///
    /// # Errors
    ///
    /// A filter or a parameter is invalid.
    pub(crate) fn settle_query(&mut self) -> Result<(), String> {
        let parameters = &self.parameters;
        let mut url = Serializer::new(String::new());
        for filter in &self.filters {
            url.append_pair("filter", filter);
        }
        url.extend_pairs(parameters.given());
        let is_paged = parameters.page.is_some() || parameters.page_size.is_some();
        if parameters.page.is_some() && parameters.page_size.is_none() {
            // A page in a URL needs a size; only the command line has a default.
            url.append_pair("pagesize", PAGE_SIZE);
        }
        if parameters.summary.is_some() && !is_paged {
            // Otherwise the objects themselves would be decoded and shown as well.
            url.append_pair("summaryonly", "true");
        }
        self.query = Query::from_url(&url.finish()).map_err(|error| {
            let text = error.to_string();
            // The errors speak of a URL, but the user gave options.
            text.replace("parameter pagesize", "option --page-size")
                .replace("parameter ", "option --")
                .replace("--filter", "FILTER")
        })?;
        Ok(())
    }
}

fn names(text: &str) -> Result<Names, &'static str> {
    let names: Vec<String> = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Err("it names no field");
    }
    Ok(Names(names))
}

/// Reads `path:type`.
fn field(text: &str) -> Result<(String, FieldType), String> {
    let of = |name: &str| TYPES.iter().find(|(known, _)| *known == name);
    let read = text
        .rsplit_once(':')
        .and_then(|(path, name)| Some((path.to_owned(), of(name)?.1)));
    read.filter(|(path, _)| !path.is_empty()).ok_or_else(|| {
        let known = TYPES.map(|(name, _)| name).join(", ");
        format!("it is no FIELD:TYPE such as status.podIP:ip; the types are {known}")
    })
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Err("it is no number of seconds above 0"),
    }
}

#[cfg(test)]
mod tests {
    use lariat_sql::{field as of, label};

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options, String> {
        let mut options: Options =
            crate::testing::parsed(arguments).map_err(|error: clap::Error| error.to_string())?;
        options.settle_query()?;
        Ok(options)
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
        ])
        .unwrap();
        let either = of("status.phase")
            .equals("Running")
            .or(label("app").like("web"));
        let query = Query::new()
            .filter(either)
            .filter(of("spec.nodeName").exists())
            .sort(of("spec.nodeName"))
            .sort_descending(of("metadata.name"));
        assert_eq!(options.query, query.page(2, 50));
        assert!(options.is_everywhere);
        let columns: Vec<&String> = options.columns().collect();
        assert_eq!(columns, ["status.podIP", "spec.nodeName"]);
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
        // As kubectl and SQL call it.
        assert_eq!(query(&["pods", "--limit", "7"]), Query::new().page(1, 7));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (arguments, expected) in [
            (&[][..], "<KIND>"),
            (
                &["pods", "-A", "-n", "a"],
                "'--all-namespaces' cannot be used with '--namespace <NAME>'",
            ),
            (
                &["pods", "-o", "yaml"],
                "[possible values: table, wide, name, json]",
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
                "'--sort <FIELD,...>' cannot be used multiple times",
            ),
            (&["pods", "--bogus"], "unexpected argument '--bogus' found"),
            (&["pods", "-x"], "unexpected argument '-x' found"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments:?}: {error}");
        }
    }
}
