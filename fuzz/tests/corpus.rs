//! Every target over its seeds and over what was found once, without a fuzzer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lariat_fuzz::{TARGETS, target};

/// How large all seeds may be together, in bytes.
const MOST_BYTES: usize = 200_000;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns the files in a folder; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let mut files: Vec<PathBuf> = paths.collect();
    files.sort();
    files
}

/// Runs a target over the inputs that are kept for it; a panic follows the name of its input.
fn holds(name: &str) {
    let target = target(name).expect("there is such a target");
    let seeds = files(&folder("corpus").join(name));
    assert!(!seeds.is_empty(), "{name} has seeds");
    for path in seeds
        .into_iter()
        .chain(files(&folder("findings").join(name)))
    {
        println!("{}", path.display());
        (target.run)(&fs::read(&path).expect("the input is readable"));
    }
}

macro_rules! holds {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })*

        #[test]
        fn every_target_is_tested_and_every_folder_is_a_target_s() {
            let tested = BTreeSet::from([$(stringify!($name).to_owned()),*]);
            let targets: BTreeSet<String> = TARGETS.iter().map(|each| each.name.to_owned()).collect();
            assert_eq!(tested, targets);
            for kept in ["corpus", "findings", "dictionaries"] {
                let names = files(&folder(kept)).into_iter().filter_map(|path| {
                    path.file_name().map(|name| name.to_string_lossy().into_owned())
                });
                let unknown: Vec<String> = names.filter(|name| !targets.contains(name)).collect();
                assert!(unknown.is_empty(), "{kept}: {unknown:?}");
            }
        }
    };
}

holds! {
    apply continue_tokens field_selectors json_patch json_path kubeconfig label_selectors list_pages merge_patch metadata
    protobuf rules strategic_patch watch_lines yaml
}

#[test]
fn seeds_are_small() {
    let sizes = TARGETS
        .iter()
        .flat_map(|target| files(&folder("corpus").join(target.name)));
    let bytes: usize = sizes
        .map(|path| fs::read(path).map_or(0, |seed| seed.len()))
        .sum();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes");
}
