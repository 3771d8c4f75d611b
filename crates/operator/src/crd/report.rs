//! The report of the installation of a CRD.

use std::fmt;

/// The result of installing one CRD.
///
/// Its `Display` is one line, with every mismatch and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrdReport {
    /// The name, such as `widgets.demo.dev`.
    pub name: String,
    /// The change that was written.
    pub change: CrdChange,
    /// The differences that remain between the installed CRD and this program's.
    pub mismatches: Vec<CrdMismatch>,
}

/// The change that was written to a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrdChange {
    /// It was missing, and was created.
    Created,
    /// It was patched at these paths.
    ///
    /// Such as `spec.versions[v1].schema.openAPIV3Schema.properties.spec`.
    Updated(Vec<String>),
    /// Nothing was written.
    Unchanged,
}

/// A remaining difference between the installed CRD and this program's.
///
/// Its `Display` says what to do.
///
/// ```
/// use lariat::operator::CrdMismatch;
///
/// let mismatch = CrdMismatch::UnknownVersion { version: "v2".to_owned(), served: true };
/// assert_eq!(
///     mismatch.to_string(),
///     "version v2 is installed and served but unknown to this program: left unchanged",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrdMismatch {
    /// The installed CRD has a version that this program does not have.
    UnknownVersion {
        /// The version.
        version: String,
        /// Whether it is served.
        served: bool,
    },
    /// A version has fields that this program does not have; they are kept.
    UnknownFields {
        /// The version.
        version: String,
    },
    /// Objects are stored in a newer version, which this program does not have.
    StoredAsNewer {
        /// The version.
        version: String,
    },
    /// Objects may still be stored in a version that this program does not have.
    StillStored {
        /// The version.
        version: String,
    },
    /// The installed CRD has a greater version number; nothing was written.
    NewerCrd {
        /// The number of the installed CRD.
        installed: u64,
        /// The number of this program's CRD; zero if it has none.
        ours: u64,
    },
    /// The installed CRD differs, and this program may not write it.
    Differs {
        /// The paths at which it differs.
        paths: Vec<String>,
    },
    /// The API server does not keep the written values.
    ///
    /// It drops fields that it does not know, or another client writes them too.
    NotKept {
        /// The paths of the values.
        paths: Vec<String>,
    },
    /// Some names belong to another CRD; the kind is served under the others.
    NamesNotAccepted {
        /// The API server's message.
        message: String,
    },
}

impl fmt::Display for CrdReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.change)?;
        self.mismatches
            .iter()
            .try_for_each(|mismatch| write!(f, "; {mismatch}"))
    }
}

impl fmt::Display for CrdChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created => f.write_str("created"),
            Self::Updated(paths) => write!(f, "updated at {}", some(paths)),
            Self::Unchanged => f.write_str("unchanged"),
        }
    }
}

impl fmt::Display for CrdMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVersion { version, served } => write!(
                f,
                "version {version} is installed{} but unknown to this program: left unchanged",
                if *served { " and served" } else { "" }
            ),
            Self::UnknownFields { version } => write!(
                f,
                "version {version} has fields that are unknown to this program: kept, because objects may have them; to \
                 remove them, increase the number of this program's CRD (`with_crd_version`)"
            ),
            Self::StoredAsNewer { version } => write!(
                f,
                "objects are stored as {version}, which is newer than this program's versions: left unchanged; update this \
                 program, or install its CRD by hand to go back"
            ),
            Self::StillStored { version } => write!(
                f,
                "objects may still be stored as {version}: before you remove the version, rewrite every object, and remove \
                 {version} from status.storedVersions"
            ),
            Self::NewerCrd { installed, ours } => write!(
                f,
                "the installed CRD has number {installed}, and this program's has {ours}: left unchanged; update this program"
            ),
            Self::Differs { paths } => write!(
                f,
                "the installed CRD differs at {}, and this program may not change it: install this program's CRD",
                some(paths)
            ),
            Self::NotKept { paths } => write!(
                f,
                "the API server does not keep {}, or another client writes it too: update the API server, or let one \
                 program write it",
                some(paths)
            ),
            Self::NamesNotAccepted { message } => write!(
                f,
                "not all names are accepted ({message}): change them, or remove the CRD that has them"
            ),
        }
    }
}

/// Returns the first few of many paths as text.
pub(super) fn some(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = paths.iter().take(SHOWN).map(String::as_str);
    let text = shown.collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
