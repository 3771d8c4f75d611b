//! The command that runs this program.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::source::relative;
use crate::quote::{shell, shell_text};

/// The name of an installed one.
const NAME: &str = "lariat";

/// Returns the command that runs this program in a folder.
pub(super) fn command(folder: &Path) -> String {
    let Ok(program) = env::current_exe() else {
        return NAME.to_owned();
    };
    found(&program, env::var_os("PATH").as_deref(), folder)
}

/// Returns the name of a program if a shell finds it by that, or else its path, the shorter one.
fn found(program: &Path, path: Option<&OsStr>, folder: &Path) -> String {
    let real = |path: PathBuf| path.canonicalize().ok();
    let file = format!("{NAME}{}", env::consts::EXE_SUFFIX);
    let named = path.and_then(|path| env::split_paths(path).find_map(|it| real(it.join(&file))));
    let this = real(program.to_owned());
    if this.is_some() && named == this {
        return NAME.to_owned();
    }
    let absolute = shell(program);
    let folder = real(folder.to_owned()).zip(this);
    let relative = folder.and_then(|(folder, this)| relative(&folder, &this));
    // A name alone would be looked up.
    let relative = relative.filter(|path| path.contains('/'));
    let relative = relative.map(|path| shell_text(&path));
    relative
        .filter(|path| path.len() < absolute.len())
        .unwrap_or(absolute)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_is_named_as_a_shell_finds_it() {
        let folder = env::temp_dir().join(format!("lariat-own-{}", fastrand::u64(..)));
        let (built, installed, project) = (
            folder.join("lariat/target/debug"),
            folder.join("bin"),
            folder.join("shop"),
        );
        for made in [&built, &installed, &project] {
            fs::create_dir_all(made).unwrap();
        }
        let file = format!("{NAME}{}", env::consts::EXE_SUFFIX);
        let program = built.join(&file);
        fs::write(&program, "").unwrap();
        let there = format!("../lariat/target/debug/{file}");
        let nowhere = OsStr::new("");
        assert_eq!(found(&program, None, &project), there);
        assert_eq!(found(&program, Some(nowhere), &project), there);
        assert_eq!(found(&program, Some(built.as_os_str()), &project), NAME);
        // An older one that is installed does not know the same options.
        fs::write(installed.join(&file), "").unwrap();
        let path = env::join_paths([&installed, &built]).unwrap();
        assert_eq!(found(&program, Some(&path), &project), there);
        fs::remove_dir_all(folder).unwrap();
    }
}
