//! The options of `lariat new`.

use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::{OsStringValueParser, TypedValueParser};

use super::names::{Group, Kind, Name};
use super::source::Source;

/// The group of a new operator's kind by default.
const GROUP: &str = "example.com";

const EXAMPLE: &str = "\
Example:
  lariat new shop-operator --group shop.example.com
  cd shop-operator && cargo test
  lariat add kind Fox";

/// The names of the operator, and its source.
#[derive(Debug, PartialEq, clap::Args)]
#[command(args_override_self = true, after_help = EXAMPLE)]
pub(crate) struct Options {
    /// The operator's name, such as shop-operator.
    #[arg(value_parser = Name::new)]
    pub(crate) name: Name,
    /// The kind it manages [default: from NAME, Shop for shop-operator].
    #[arg(long, value_name = "KIND", value_parser = Kind::new)]
    kind: Option<Kind>,
    /// The API group of the kind, a domain that you own.
    #[arg(long, value_name = "GROUP", default_value = GROUP, value_parser = Group::new)]
    pub(crate) group: Group,
    /// The folder to create, or an empty one [default: NAME].
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) path: Option<PathBuf>,
    /// Add a defaulting and a validating webhook for the kind.
    #[arg(long)]
    pub(crate) webhook: bool,
    /// The source of the Lariat crates [default: this program's checkout].
    ///
    /// Lariat is not published yet. The source is a checkout, which Cargo.toml names by its relative path, or the URL
    /// of a repository, optionally with #REVISION.
    #[arg(long, value_name = "FROM", value_hint = ValueHint::DirPath)]
    #[arg(value_parser = OsStringValueParser::new().map(|text| Source::new(&text)))]
    pub(crate) lariat: Option<Source>,
}

impl Options {
    /// Returns the kind, which follows from the name if none is given.
    pub(crate) fn kind(&self) -> Kind {
        self.kind.clone().unwrap_or_else(|| self.name.kind())
    }
}
