//! The levels and versions that the labels of a namespace ask for.
//!
//! Source: `k8s.io/pod-security-admission/api`.

use std::fmt;

use serde_json::json;

use crate::cause::StatusCause;

/// The prefix of the labels with which a namespace restricts its Pods.
pub const PREFIX: &str = "pod-security.kubernetes.io/";

/// A Pod Security Standard; each level forbids what the one before it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    Privileged,
    /// Known privilege escalations are forbidden.
    Baseline,
    /// Everything that most Pods do not need is forbidden.
    Restricted,
}

/// The release of Kubernetes whose rules count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The newest ones.
    Latest,
    /// Those of `v1.N`.
    Minor(i64),
}

/// A level by the rules of a release, such as `restricted:latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelVersion {
    /// The standard.
    pub level: Level,
    /// The release whose rules count.
    pub version: Version,
}

/// The policy that the labels of a namespace declare.
///
/// ```
/// use lariat_apimachinery::admission::pod_security::Policy;
///
/// let labels = [("pod-security.kubernetes.io/enforce", "baseline")];
/// let label = |name: &str| labels.iter().find(|each| each.0 == name).map(|each| each.1);
/// let (policy, causes) = Policy::of(label);
/// assert_eq!(policy.enforce.to_string(), "baseline:latest");
/// // Without a label for warnings, they have the level that is enforced.
/// assert_eq!(policy.warn.to_string(), "baseline:latest");
/// assert!(causes.is_empty());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The level whose violations are refused.
    pub enforce: LevelVersion,
    /// The level whose violations are noted in the audit log.
    pub audit: LevelVersion,
    /// The level of whose violations the client is warned.
    pub warn: LevelVersion,
}

impl Policy {
    /// Reads the labels of a namespace; the causes say which of them are wrong.
    ///
    /// An invalid level counts as `restricted` for `enforce`, and as `privileged` for `audit` and `warn`.
    // `PolicyToEvaluate`.
    pub fn of<'a>(label: impl Fn(&str) -> Option<&'a str>) -> (Self, Vec<StatusCause>) {
        let mut labels = Labels {
            label: &label,
            causes: Vec::new(),
        };
        let (enforce, level) = labels.read("enforce", Level::Restricted);
        let (audit, _) = labels.read("audit", Level::Privileged);
        let (mut warn, given) = labels.read("warn", Level::Privileged);
        if given == Given::Nothing && level == Given::Level && enforce.level > warn.level {
            warn.level = enforce.level;
            if labels.get("warn-version").is_none() {
                warn.version = enforce.version;
            }
        }
        let policy = Self {
            enforce,
            audit,
            warn,
        };
        (policy, labels.causes)
    }

    /// Returns whether nothing is forbidden, noted or warned of.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        let levels = [self.enforce, self.audit, self.warn];
        levels.iter().all(|each| each.level == Level::Privileged)
    }
}

/// The level in a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Nothing,
    Level,
    Nonsense,
}

/// The labels of a namespace while they are read.
struct Labels<'a, 'f> {
    label: &'f dyn Fn(&str) -> Option<&'a str>,
    causes: Vec<StatusCause>,
}

impl<'a> Labels<'a, '_> {
    fn get(&self, mode: &str) -> Option<&'a str> {
        (self.label)(&format!("{PREFIX}{mode}"))
    }

    /// Reads the level and the version of a mode; an invalid level is `fallback`.
    fn read(&mut self, mode: &str, fallback: Level) -> (LevelVersion, Given) {
        let (level, given) = match self.get(mode).map(|text| (text, Level::parse(text))) {
            None => (Level::Privileged, Given::Nothing),
            Some((_, Some(level))) => (level, Given::Level),
            Some((text, None)) => {
                let rule = "must be one of privileged, baseline, restricted";
                self.refuse(mode, text, rule);
                (fallback, Given::Nonsense)
            }
        };
        let of_version = format!("{mode}-version");
        let text = self.get(&of_version).unwrap_or("latest");
        let version = Version::parse(text).unwrap_or_else(|| {
            self.refuse(&of_version, text, r#"must be "latest" or "v1.x""#);
            Version::Latest
        });
        (LevelVersion { level, version }, given)
    }

    fn refuse(&mut self, mode: &str, text: &str, rule: &str) {
        let field = format!("metadata.labels[{PREFIX}{mode}]");
        let cause = StatusCause::invalid(&field, &json!(text), rule);
        self.causes.push(cause);
    }
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        let levels = [Self::Privileged, Self::Baseline, Self::Restricted];
        levels.into_iter().find(|level| level.as_str() == text)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let digits = text.strip_prefix("v1.")?;
        let is_canonical = digits == "0" || !digits.starts_with('0');
        let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
        // Longer numbers than Go's `int` has are refused.
        let minor = digits.parse().ok().filter(|_| is_canonical && is_number);
        minor.map(Self::Minor)
    }

    /// Returns the release as a number, with which those of rules are compared.
    pub(super) fn minor(self) -> i64 {
        match self {
            Self::Latest => i64::MAX,
            Self::Minor(minor) => minor,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => formatter.write_str("latest"),
            Self::Minor(minor) => write!(formatter, "v1.{minor}"),
        }
    }
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.level.as_str(), self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads labels without their prefix.
    fn policy(labels: &[(&str, &str)]) -> (String, usize) {
        let (policy, causes) = Policy::of(|name: &str| {
            let name = name.strip_prefix(PREFIX)?;
            let found = labels.iter().find(|(each, _)| *each == name);
            found.map(|(_, value)| *value)
        });
        let Policy {
            enforce,
            audit,
            warn,
        } = policy;
        (format!("{enforce} {audit} {warn}"), causes.len())
    }

    #[test]
    fn labels_name_what_is_enforced_and_warned_of() {
        for (labels, expected, wrong) in [
            (
                &[][..],
                "privileged:latest privileged:latest privileged:latest",
                0,
            ),
            (
                &[("enforce", "restricted"), ("enforce-version", "v1.7")],
                "restricted:v1.7 privileged:latest restricted:v1.7",
                0,
            ),
            (
                &[("enforce", "baseline"), ("warn-version", "v1.9")],
                "baseline:latest privileged:latest baseline:v1.9",
                0,
            ),
            (
                &[("enforce", "baseline"), ("warn", "privileged")],
                "baseline:latest privileged:latest privileged:latest",
                0,
            ),
            (
                &[("enforce", "x"), ("audit", "y"), ("warn", "z")],
                "restricted:latest privileged:latest privileged:latest",
                3,
            ),
            // No warnings about a level that is not known.
            (
                &[("enforce", "")],
                "restricted:latest privileged:latest privileged:latest",
                1,
            ),
            (
                &[
                    ("enforce-version", "v1.01"),
                    ("audit-version", "v1."),
                    ("warn-version", "v1.+1"),
                ],
                "privileged:latest privileged:latest privileged:latest",
                3,
            ),
            (
                &[
                    ("enforce-version", "v1.9223372036854775808"),
                    ("audit-version", "v1.0"),
                ],
                "privileged:latest privileged:v1.0 privileged:latest",
                1,
            ),
        ] {
            assert_eq!(policy(labels), (expected.to_owned(), wrong), "{labels:?}");
        }
    }
}
