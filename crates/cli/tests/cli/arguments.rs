//! Help, suggestions, and projects that are written.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Folder, run};

/// Lists the files of a folder and of those below it.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("it can be read") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[tokio::test]
async fn a_project_says_nothing_of_the_machine_it_was_made_on() {
    let folder = Folder::new();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    for (name, options) in [
        ("shop-operator", &[][..]),
        ("fox", &["--lariat", checkout.to_str().unwrap()]),
        ("bird", &["--lariat", "https://example.com/lariat.git#v1"]),
    ] {
        let project = folder.0.join(name);
        let arguments = ["new", name, "--path", project.to_str().unwrap()];
        let (code, _, stderr) = run(&[&arguments[..], options].concat()).await;
        assert_eq!(code, Some(0), "{stderr}");
        let mut written = Vec::new();
        files(&project, &mut written);
        assert!(written.len() > 10, "{written:?}");
        for file in written {
            let text = fs::read_to_string(&file).unwrap();
            for absolute in [&checkout, &folder.0.canonicalize().unwrap()] {
                let absolute = absolute.to_str().unwrap();
                // The way from the project may well end with it.
                let text = text.replace(&format!("..{absolute}"), "");
                assert!(!text.contains(absolute), "{}: {text}", file.display());
            }
        }
    }
    let taken = run(&["new", "shop", "--kind", "Pod", "--path", "nowhere"]).await;
    let expected = "error: invalid value 'Pod' for '--kind <KIND>': it is a kind of Kubernetes itself; choose another\n";
    assert_eq!((taken.0, &*taken.1), (Some(2), ""));
    assert!(taken.2.starts_with(expected), "{}", taken.2);
}

#[tokio::test]
async fn help_and_version_go_to_stdout() {
    for (arguments, expected) in [
        (&["--help"][..], "Usage: lariat <COMMAND>"),
        (&["help"], "Usage: lariat <COMMAND>"),
        (&["cluster", "--help"], "Usage: lariat cluster [OPTIONS]"),
        (&["help", "query"], "Usage: lariat query [OPTIONS] <KIND>"),
        (&["--version"], "lariat 0."),
        (&["completions", "bash"], "complete -F _lariat"),
    ] {
        let (code, stdout, stderr) = run(arguments).await;
        assert_eq!((code, &*stderr), (Some(0), ""));
        assert!(stdout.contains(expected), "{stdout}");
    }
}

#[tokio::test]
async fn a_mistyped_option_is_suggested() {
    let (code, stdout, stderr) = run(&["cluster", "--kubeconfg", "k"]).await;
    assert_eq!((code, &*stdout), (Some(2), ""));
    for expected in [
        "error: unexpected argument '--kubeconfg' found\n",
        "tip: a similar argument exists: '--kubeconfig'\n",
        "Usage: lariat cluster ",
    ] {
        assert!(stderr.contains(expected), "{stderr}");
    }
}
