//! What became of a CRD.

use std::fmt;

/// What became of one CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrdReport {
    /// Its name, such as `widgets.demo.dev`.
    pub name: String,
    /// What was written.
    pub change: CrdChange,
    /// Where what is installed is not what this program says, and stays so.
    pub mismatches: Vec<CrdMismatch>,
}

/// What was written to a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrdChange {
    /// It was missing.
    Created,
    /// It differed at these paths, such as `spec.versions[v1].schema.openAPIV3Schema.properties.spec`.
    Updated(Vec<String>),
    /// Nothing was written.
    Unchanged,
}

/// A way in which an installed CRD is not what this program says; its text says what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrdMismatch {
    /// A version is installed that this program does not know.
    UnknownVersion {
        /// The version.
        version: String,
        /// Whether it is served.
        served: bool,
    },
    /// Objects are stored as a newer version, which this program does not know.
    StoredAsNewer {
        /// The version.
        version: String,
    },
    /// Objects may still be stored as a version this program does not know.
    StillStored {
        /// The version.
        version: String,
    },
    /// The CRD is numbered, and greater than this program's; nothing was written.
    NewerCrd {
        /// The number of what is installed.
        installed: u64,
        /// The number of this program's CRD; zero if it has none.
        ours: u64,
    },
    /// What is installed differs, and may not be written.
    Differs {
        /// Where.
        paths: Vec<String>,
    },
    /// What was written is not there: the API server does not keep it, or somebody else writes it too.
    NotKept {
        /// Where.
        paths: Vec<String>,
    },
    /// Some of the names are taken by another CRD; the kind is served under the others.
    NamesNotAccepted {
        /// What the API server says.
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
                "version {version} is installed{}, and unknown to this program: left as it is",
                if *served { " and served" } else { "" }
            ),
            Self::StoredAsNewer { version } => write!(
                f,
                "objects are stored as {version}, which is newer than what this program knows: left as it is; \
                 update this program, or install its definition by hand to go back"
            ),
            Self::StillStored { version } => write!(
                f,
                "objects may still be stored as {version}: write every object once, and take {version} out of \
                 status.storedVersions, before the version is removed"
            ),
            Self::NewerCrd { installed, ours } => write!(
                f,
                "definition {installed} is installed, and this program has {ours}: left as it is; update this program"
            ),
            Self::Differs { paths } => write!(
                f,
                "what is installed differs at {}, and may not be changed: install the definition of this program",
                some(paths)
            ),
            Self::NotKept { paths } => write!(
                f,
                "the API server does not keep {}, or somebody else writes it too: update the API server, or let one \
                 program write it",
                some(paths)
            ),
            Self::NamesNotAccepted { message } => write!(
                f,
                "not all names are accepted ({message}): change them, or remove the definition that has them"
            ),
        }
    }
}

/// Writes the first of many paths.
fn some(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = paths.iter().take(SHOWN).map(String::as_str);
    let text = shown.collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}
