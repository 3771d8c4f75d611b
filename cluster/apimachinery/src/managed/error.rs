//! The error of a server-side apply.

use std::fmt;

use super::entries::Manager;

/// The error of a server-side apply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApplyError {
    /// The applied object does not match its schema; each error has a path.
    Untyped(Vec<String>),
    /// The live object does not match its schema; each error has a path.
    UntypedLive {
        /// Whether the object has no managers yet.
        is_unmanaged: bool,
        /// The mismatches, each as a sentence.
        errors: Vec<String>,
    },
    /// Others own fields that it would change.
    Conflicts(Vec<Conflict>),
}

/// A field that an apply would change and another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: Manager,
    /// The field, such as `.spec.replicas`.
    pub path: String,
}

/// The texts are the API server's.
impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untyped(errors) | Self::UntypedLive { errors, .. } => match &errors[..] {
                [one] => f.write_str(one),
                many => write!(f, "errors:\n  {}", many.join("\n  ")),
            },
            Self::Conflicts(conflicts) => fmt_conflicts(conflicts, f),
        }
    }
}

impl std::error::Error for ApplyError {}

fn fmt_conflicts(conflicts: &[Conflict], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // `getConflictMessage`: one conflict stands on one line, several are grouped by their manager.
    if let [one] = conflicts {
        return write!(f, "Apply failed with 1 conflict: {one}: {}", one.path);
    }
    write!(f, "Apply failed with {} conflicts: ", conflicts.len())?;
    let mut last = None;
    for (at, conflict) in conflicts.iter().enumerate() {
        if at > 0 {
            f.write_str("\n")?;
        }
        // Conflicts are collected manager by manager, so comparing with the one before is enough to group them.
        if last != Some(&conflict.manager) {
            writeln!(f, "conflicts with {}:", conflict.manager.shown())?;
            last = Some(&conflict.manager);
        }
        write!(f, "- {}", conflict.path)?;
    }
    Ok(())
}

/// Names the manager as the causes of a `Status` do, without the path.
///
/// A cause has the path in a field of its own.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "conflict with {}", self.manager.shown())
    }
}
