//! Where a project takes Lariat from: it is not published yet.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::quote::{dockerfile, shell_text, toml};

/// Where a project takes Lariat from, as the user says it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    /// A checkout in a folder.
    Checkout(PathBuf),
    /// A repository, in the present state or another.
    Git {
        url: String,
        revision: Option<String>,
    },
}

/// The source of Lariat as the project names it.
#[derive(Debug)]
pub(super) enum ResolvedSource {
    /// The path from the project to a checkout.
    Path(String),
    Git {
        url: String,
        revision: Option<String>,
    },
}

/// The checkout this program was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The build folder of a project's image, above both the project and the checkout.
const BUILD: &str = "/build";

/// What a URL of a repository begins with.
const SCHEMES: [&str; 5] = ["https://", "http://", "ssh://", "git://", "file://"];

impl Source {
    /// Parses `--lariat`: a URL, optionally with `#` and a revision, or a path.
    pub(crate) fn new(text: &OsStr) -> Self {
        let url = text
            .to_str()
            .filter(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)));
        let Some(url) = url else {
            return Self::Checkout(text.into());
        };
        let (url, revision) = match url.split_once('#') {
            Some((url, revision)) => (url, Some(revision.to_owned())),
            None => (url, None),
        };
        Self::Git {
            url: url.to_owned(),
            revision,
        }
    }

    /// Checks that there is what it names.
    pub(super) fn check(&self) -> Result<()> {
        if let Self::Checkout(folder) = self {
            ensure!(
                is_checkout(folder),
                "--lariat {} is no checkout of Lariat: it has no crates/lariat",
                folder.display()
            );
        }
        Ok(())
    }

    /// Returns the checkout this program was built from.
    pub(super) fn default() -> Result<Self> {
        ensure!(
            is_checkout(Path::new(BUILT_FROM)),
            "the checkout this program was built from is gone; name another, or the URL of a repository, with --lariat"
        );
        Ok(Self::Checkout(BUILT_FROM.into()))
    }

    /// Returns the source as a project in a folder sees it.
    pub(super) fn seen_from(&self, project: &Path) -> Result<ResolvedSource> {
        let folder = match self {
            Self::Checkout(folder) => folder,
            Self::Git { url, revision } => {
                let (url, revision) = (url.clone(), revision.clone());
                return Ok(ResolvedSource::Git { url, revision });
            }
        };
        let resolved = |path: &Path| {
            let path = path.canonicalize();
            path.with_context(|| format!("cannot find {}", folder.display()))
        };
        let path = relative(&resolved(project)?, &resolved(folder)?);
        let Some(path) = path else {
            bail!(
                "there is no path from {} to {} that a project could keep; use the URL of a repository with --lariat",
                project.display(),
                folder.display()
            );
        };
        Ok(ResolvedSource::Path(path))
    }
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("crates/lariat/Cargo.toml").is_file()
}

/// Returns the relative path between two absolute folders without symlinks.
///
/// It is `None` if they are on different drives, or if the path is not UTF-8.
pub(super) fn relative(from: &Path, to: &Path) -> Option<String> {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    if common == 0 {
        return None;
    }
    let name = |component: &Component<'_>| component.as_os_str().to_str().map(str::to_owned);
    let up = from[common..].iter().map(|_| Some("..".to_owned()));
    let steps: Option<Vec<String>> = up.chain(to[common..].iter().map(name)).collect();
    let path = steps?.join("/");
    (!path.contains(char::is_control)).then_some(path)
}

impl ResolvedSource {
    /// The dependency, as Cargo.toml has it.
    pub(super) fn dependency(&self) -> String {
        match self {
            Self::Path(path) => format!("{{ path = {} }}", toml(&format!("{path}/crates/lariat"))),
            Self::Git { url, revision } => {
                let revision = revision
                    .as_ref()
                    .map(|revision| format!(", rev = {}", toml(revision)));
                format!("{{ git = {}{} }}", toml(url), revision.unwrap_or_default())
            }
        }
    }

    /// The command that installs `lariat`.
    pub(super) fn install(&self) -> String {
        match self {
            Self::Path(path) => {
                let package = shell_text(&format!("{path}/crates/cli"));
                format!("cargo install --path {package}")
            }
            Self::Git { url, revision } => {
                let revision = revision
                    .as_ref()
                    .map(|revision| format!(" --rev {}", shell_text(revision)));
                let (url, revision) = (shell_text(url), revision.unwrap_or_default());
                format!("cargo install --git {url}{revision} lariat-cli")
            }
        }
    }

    /// The option of `docker build` by which the checkout gets into the image.
    pub(super) fn build_context(&self) -> String {
        match self {
            Self::Path(path) => {
                format!(" --build-context {}", shell_text(&format!("lariat={path}")))
            }
            Self::Git { .. } => String::new(),
        }
    }

    /// The line by which the checkout gets into the image.
    pub(super) fn copy(&self) -> String {
        let Self::Path(path) = self else {
            return String::new();
        };
        let below = match path.trim_start_matches("../") {
            ".." => "",
            below => below,
        };
        let target = dockerfile(&format!("{BUILD}/{below}"));
        format!(
            "# The checkout of Lariat has to be where Cargo.toml says; its .dockerignore keeps what was built there out.\n\
             COPY --from=lariat [\".\", {target}]\n"
        )
    }

    /// Where the project is in the image: as deep as the way to the checkout leads up.
    pub(super) fn folder(&self) -> String {
        let levels = match self {
            Self::Path(path) => path.split('/').filter(|step| *step == "..").count(),
            Self::Git { .. } => 1,
        };
        BUILD.to_owned() + &"/operator".repeat(levels.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(from: &str, to: &str) -> ResolvedSource {
        ResolvedSource::Path(relative(Path::new(from), Path::new(to)).unwrap())
    }

    #[test]
    fn a_checkout_is_named_by_the_way_to_it() {
        for (from, to, path, folder, copied) in [
            (
                "/home/a/shop",
                "/home/a/lariat",
                "../lariat",
                "/build/operator",
                "/build/lariat",
            ),
            (
                "/home/a/code/shop",
                "/home/a/src/lariat",
                "../../src/lariat",
                "/build/operator/operator",
                "/build/src/lariat",
            ),
            (
                "/src/lariat/shop",
                "/src/lariat",
                "..",
                "/build/operator",
                "/build/",
            ),
        ] {
            let resolved = resolved(from, to);
            let expected = format!("{{ path = \"{path}/crates/lariat\" }}");
            assert_eq!(resolved.dependency(), expected);
            assert_eq!(resolved.folder(), folder);
            let copy = format!("COPY --from=lariat [\".\", \"{copied}\"]\n");
            assert!(resolved.copy().ends_with(&copy), "{}", resolved.copy());
            assert_eq!(
                resolved.build_context(),
                format!(" --build-context lariat={path}")
            );
        }
    }

    #[test]
    fn what_is_in_a_path_is_quoted() {
        let resolved = resolved("/a/shop", r#"/a/my "lariat" $x"#);
        assert_eq!(
            resolved.dependency(),
            r#"{ path = "../my \"lariat\" $x/crates/lariat" }"#
        );
        let copied = r#""/build/my \\\"lariat\\\" \\$x""#;
        assert!(resolved.copy().contains(copied), "{}", resolved.copy());
        assert_eq!(
            resolved.install(),
            r#"cargo install --path '../my "lariat" $x/crates/cli'"#
        );
        assert_eq!(
            relative(Path::new("/a/shop"), Path::new("/a/la\nriat")),
            None
        );
    }

    #[test]
    fn a_repository_needs_no_checkout() {
        let source = |text: &str| Source::new(OsStr::new(text));
        assert_eq!(source("../lariat"), Source::Checkout("../lariat".into()));
        let git = source("https://example.com/lariat.git#v0.1.0");
        let resolved = git.seen_from(Path::new("/nowhere")).unwrap();
        let dependency = r#"{ git = "https://example.com/lariat.git", rev = "v0.1.0" }"#;
        assert_eq!(resolved.dependency(), dependency);
        assert_eq!((&*resolved.copy(), &*resolved.build_context()), ("", ""));
        let expected = "cargo install --git https://example.com/lariat.git --rev v0.1.0 lariat-cli";
        assert_eq!(resolved.install(), expected);
        let plain = source("ssh://git@example.com/lariat").seen_from(Path::new("/nowhere"));
        let dependency = r#"{ git = "ssh://git@example.com/lariat" }"#;
        assert_eq!(plain.unwrap().dependency(), dependency);
    }
}
