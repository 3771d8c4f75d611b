//! Every target over its seeds and over what was found once, without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Target;

/// How large the seeds of a package may be together, in bytes.
pub const MOST_BYTES: usize = 100_000;

/// Defines the corpus tests of a package: of each target, and of its folders.
///
/// It is a macro, because the name of a test cannot be a parameter.
#[macro_export]
macro_rules! corpus_tests {
    ($targets:expr; $($name:ident)*) => {
        $(#[test]
        fn $name() {
            $crate::corpus::holds(env!("CARGO_MANIFEST_DIR"), $targets, stringify!($name));
        })*

        #[test]
        fn every_target_is_tested_and_every_folder_is_a_target_s() {
            let tested = [$(stringify!($name)),*];
            $crate::corpus::is_complete(env!("CARGO_MANIFEST_DIR"), $targets, &tested);
        }

        #[test]
        fn seeds_are_small() {
            let bytes = $crate::corpus::bytes(env!("CARGO_MANIFEST_DIR"), $targets);
            assert!(bytes <= $crate::corpus::MOST_BYTES, "{bytes} bytes");
        }
    };
}

/// Runs a target over the inputs that are kept for it, and prints their names.
///
/// # Panics
///
/// If the target does, or has no seeds.
pub fn holds(package: &str, targets: &[Target], name: &str) {
    let target = targets.iter().find(|each| each.name == name);
    let target = target.expect("there is such a target");
    let package = Path::new(package);
    let seeds = files(&package.join("corpus").join(name));
    assert!(!seeds.is_empty(), "{name} has seeds");
    let findings = files(&package.join("findings").join(name));
    for path in seeds.into_iter().chain(findings) {
        println!("{}", path.display());
        (target.run)(&fs::read(&path).expect("the input is readable"));
    }
}

/// Checks that all targets are tested, and that each folder is that of a target.
///
/// # Panics
///
/// If it is not so.
pub fn is_complete(package: &str, targets: &[Target], tested: &[&str]) {
    let names: Vec<&str> = targets.iter().map(|each| each.name).collect();
    assert_eq!(tested, names);
    for kept in ["corpus", "findings", "dictionaries"] {
        let folders = files(&Path::new(package).join(kept)).into_iter();
        let folders = folders.filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
        let unknown: Vec<String> = folders
            .filter(|name| !names.contains(&name.as_str()))
            .collect();
        assert!(unknown.is_empty(), "{kept}: {unknown:?}");
    }
}

/// Returns how large the seeds of all targets are together.
#[must_use]
pub fn bytes(package: &str, targets: &[Target]) -> usize {
    let seeds = targets
        .iter()
        .flat_map(|target| files(&Path::new(package).join("corpus").join(target.name)));
    seeds
        .map(|path| fs::read(path).map_or(0, |seed| seed.len()))
        .sum()
}

/// Returns the files in a folder; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let mut files: Vec<PathBuf> = paths.collect();
    files.sort();
    files
}
