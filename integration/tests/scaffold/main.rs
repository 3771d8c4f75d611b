//! `lariat new`: the project it writes compiles, its tests pass, and one of its replicas takes over from another.

mod everything;
#[cfg(unix)]
mod replicas;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// The project is built in it, with much of what it depends on.
const TIMEOUT: Duration = Duration::from_secs(1200);

/// The checkout this is.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A dependency with the features of the workspace's dependencies, so that cargo does not build these again.
///
/// The project's own sources need none of its features, or they would be in its manifest.
const SHARED: &str = concat!(
    "\n[target.'cfg(all())'.dependencies]\nlariat-features = { path = \"",
    env!("CARGO_MANIFEST_DIR"),
    "/../scripts/features\" }\n"
);

/// A folder of the test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("lariat-new-{}", fastrand::u64(..)));
        fs::create_dir(&path).expect("the folder is new");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns where cargo puts what it builds.
fn target() -> PathBuf {
    let target = std::env::var("CARGO_TARGET_DIR");
    target.map_or_else(|_| Path::new(ROOT).join("target"), PathBuf::from)
}

/// Runs cargo; returns whether it succeeded, and all it printed.
async fn cargo(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO"));
    command.args(arguments).current_dir(folder);
    ended(&mut command).await
}

/// Runs a command that builds into the workspace's target folder, so that what is built already is used again.
async fn ended(command: &mut Command) -> (bool, String) {
    // Build scripts read cargo's variables of this test, and would run again for the project.
    for (name, _) in std::env::vars() {
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command.env("CARGO_TARGET_DIR", target());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(TIMEOUT, command.output()).await;
    let output = ended.expect("it ends").expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let printed = text(output.stdout) + &text(output.stderr);
    (output.status.success(), printed)
}

/// Returns the path that a project names in its manifest, as cargo reads it.
async fn dependency(project: &Path) -> PathBuf {
    let (ok, text) = cargo(project, &["metadata", "--no-deps", "--format-version", "1"]).await;
    assert!(ok, "{text}");
    let metadata = text.lines().find(|line| line.starts_with('{'));
    let metadata: serde_json::Value = serde_json::from_str(metadata.expect("JSON")).expect("JSON");
    let dependencies = metadata["packages"][0]["dependencies"].as_array();
    let lariat = dependencies
        .into_iter()
        .flatten()
        .find(|each| each["name"] == "lariat");
    PathBuf::from(
        lariat.expect("it depends on Lariat")["path"]
            .as_str()
            .expect("a path"),
    )
}

#[tokio::test]
async fn a_project_names_its_checkout_whatever_that_is_called() {
    let folder = Folder::new();
    let checkout = folder.0.join(r#"my "lariat" $x #1"#);
    let package = checkout.join("crates/lariat");
    fs::create_dir_all(package.join("src")).expect("the folder is new");
    let manifest = "[package]\nname = \"lariat\"\nedition = \"2024\"\n\n[features]\ncluster = []\n";
    for (path, text) in [("Cargo.toml", manifest), ("src/lib.rs", "")] {
        fs::write(package.join(path), text).expect("it can be written");
    }
    let project = folder.0.join("work/shop");
    let (project_path, checkout) = (
        project.to_str().expect("a path"),
        checkout.to_str().expect("a path"),
    );
    let (ok, text) = lariat(&["new", "shop", "--path", project_path, "--lariat", checkout]).await;
    assert!(ok, "{text}");
    let named = dependency(&project).await;
    let named = named.canonicalize().expect("there is something");
    assert_eq!(named, package.canonicalize().expect("it was made"));
}

/// Runs the command line as it is in the checkout; returns whether it succeeded, and all it printed.
async fn lariat(arguments: &[&str]) -> (bool, String) {
    let mut built = Command::new(Path::new(ROOT).join("scripts/built.sh"));
    let (ok, text) = ended(built.arg("lariat")).await;
    assert!(ok, "{text}");
    let path = text.lines().next().expect("it prints the path");
    let mut command = Command::new(path);
    command.args(arguments);
    ended(&mut command).await
}

/// Makes a project use what is built already.
fn share(project: &Path) {
    let manifest = fs::read_to_string(project.join("Cargo.toml")).expect("it was written");
    assert!(manifest.contains(r#"lariat = { path = "../"#), "{manifest}");
    let shared = fs::write(project.join("Cargo.toml"), manifest + SHARED);
    shared.expect("it can be written");
    // The same versions, so that nothing has to be built twice.
    let lock = fs::copy(
        Path::new(ROOT).join("Cargo.lock"),
        project.join("Cargo.lock"),
    );
    lock.expect("copied");
    // The same flags, for the same reason.
    let config = project.join(".cargo");
    fs::create_dir(&config).expect("it has none");
    let flags = fs::copy(
        Path::new(ROOT).join(".cargo/config.toml"),
        config.join("config.toml"),
    );
    flags.expect("copied");
}

/// Two projects: the defaults, and names whose order is another. The first is run, too, since it is built then.
#[tokio::test(flavor = "multi_thread")]
async fn new_projects_compile_their_tests_pass_and_a_replica_takes_over_from_one_that_is_killed() {
    let folder = Folder::new();
    for (arguments, tested) in [
        (
            &["shop-operator"][..],
            "a_shop_has_a_deployment_that_follows_it",
        ),
        (
            &["fox", "--kind", "BigFox", "--group", "aaa.example.com"],
            "a_bigfox_has_a_deployment_that_follows_it",
        ),
    ] {
        let project = folder.0.join(arguments[0]);
        let path = project.to_str().expect("a path");
        let (ok, text) = lariat(&[&["new"], arguments, &["--path", path]].concat()).await;
        assert!(ok, "{text}");
        assert!(text.contains("cargo test "), "{text}");
        share(&project);
        let (ok, text) = cargo(&project, &["test", "--quiet"]).await;
        assert!(ok, "{text}");
        let (ok, text) = cargo(&project, &["test", "--", "--list"]).await;
        assert!(ok && text.contains(tested), "{text}");
        let formatted = cargo(&project, &["fmt", "--check"]).await;
        assert!(formatted.0, "{}", formatted.1);
    }
    #[cfg(unix)]
    replicas::one_is_killed(&target().join("debug/shop-operator"), &folder).await;
    let again = folder.0.join("fox");
    let again = again.to_str().expect("a path");
    let (ok, text) = lariat(&["new", "fox", "--path", again]).await;
    assert!(
        !ok && text.contains("is not empty; give another folder with --path"),
        "{text}"
    );
}
