//! What is written, added and refused. That it compiles, `integration/tests/scaffold` tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::additions::Names;
use super::options::Options;
use super::{AddOptions, add, run};
use crate::testing::parsed;

/// A folder of the test's own, which goes with it.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("lariat-scaffold-{}", fastrand::u64(..)));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Writes a project into it.
    fn project(arguments: &[&str]) -> Self {
        let folder = Self::new();
        let path = ["--path", folder.0.to_str().unwrap()];
        let options: Options =
            parsed(&[&["shop-operator"][..], arguments, &path].concat()).unwrap();
        run(&options).unwrap();
        folder
    }

    fn add(&self, arguments: &[&str]) -> Result<String, String> {
        let path = ["--path", self.0.to_str().unwrap()];
        let options: AddOptions = parsed(&[arguments, &path[..]].concat()).unwrap();
        add(&options).map_err(|error| format!("{error:#}"))
    }

    /// Returns all files, by their paths within it.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(&self.0).unwrap();
                let name = name.to_str().unwrap().replace('\\', "/");
                files.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
        files
    }

    fn edit(&self, path: &str, from: &str, to: &str) {
        let path = self.0.join(path);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("---\n");
    let read = documents.map(|text| {
        let value: Value =
            lariat_core::yaml::read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        value
    });
    read.collect()
}

/// Renders a template of the chart as Helm does, with the default values; it knows what the chart uses.
fn render(files: &BTreeMap<String, String>, template: &str) -> String {
    let values = &documents(&files["deploy/chart/values.yaml"])[0];
    let text = |pointer: &str| {
        let value = values.pointer(pointer).unwrap();
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let resources = format!(" {}", values["resources"]);
    let image = format!("\"{}:0.1.0\"", text("/image/repository"));
    let log = format!("\"{}\"", text("/log"));
    let rbac = &files["deploy/chart/files/rbac.yaml"];
    let rbac = rbac.replace("namespace: shop-operator\n", "namespace: elsewhere\n");
    let names = Names(vec![
        (
            r#"{{ .Files.Get "files/rbac.yaml" | replace "namespace: shop-operator\n" (printf "namespace: %s\n" .Release.Namespace) }}"#,
            rbac,
        ),
        (
            r#"{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}"#,
            image,
        ),
        ("{{- toYaml .Values.resources | nindent 12 }}", resources),
        ("{{ .Release.Namespace }}", "elsewhere".to_owned()),
        ("{{ .Values.image.pullPolicy }}", text("/image/pullPolicy")),
        ("{{ .Values.log | quote }}", log),
        ("{{ .Values.replicas }}", text("/replicas")),
    ]);
    let rendered = names.fill(&files[template]);
    assert!(!rendered.contains("{{"), "{rendered}");
    rendered
}

/// Returns kind, namespace and name of objects.
fn keys(objects: &[Value]) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let key = |object: &Value| {
        let metadata = &object["metadata"];
        [&object["kind"], &metadata["namespace"], &metadata["name"]].map(text)
    };
    objects.iter().map(key).collect()
}

#[test]
fn manifests_of_webhooks_fit_together() {
    let folder = Folder::project(&["--webhook"]);
    let files = folder.files();
    let kustomization = &documents(&files["deploy/kustomization.yaml"])[0];
    let resources = kustomization["resources"].as_array().unwrap();
    let mut objects = Vec::new();
    for resource in resources {
        let path = format!("deploy/{}", resource.as_str().unwrap());
        objects.extend(documents(&files[&path]));
    }
    let found = keys(&objects);
    let name = "shop-operator";
    for (kind, namespace, name) in [
        ("Namespace", "", name),
        ("Deployment", name, name),
        ("Service", name, "shop-operator-webhooks"),
        ("Secret", name, "shop-operator-webhooks-tls"),
        ("CustomResourceDefinition", "", "shops.example.com"),
    ] {
        let wanted = [kind, namespace, name].map(str::to_owned);
        assert!(found.contains(&wanted), "{kind} {name}: {found:?}");
    }
    let of_kind = |kind: &str| {
        let mut objects = objects.iter();
        objects.find(|object| object["kind"] == kind).unwrap()
    };
    let pod = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0];
    let port = &of_kind("Service")["spec"]["ports"][0]["targetPort"];
    let ports = pod["ports"].as_array().unwrap();
    let port = ports.iter().find(|it| it["name"] == *port).unwrap();
    let env = pod["env"].as_array().unwrap();
    let address = env.iter().find(|it| it["name"] == "WEBHOOKS").unwrap();
    assert_eq!(
        address["value"],
        format!("0.0.0.0:{}", port["containerPort"])
    );
    assert!(pod["lifecycle"]["preStop"]["sleep"]["seconds"].is_u64());
    let ready = &pod["readinessProbe"]["httpGet"];
    let expected = json!({"path": "/readyz", "port": "webhooks", "scheme": "HTTPS"});
    assert_eq!(*ready, expected, "caches and handlers take no webhook away");
    let rbac = &files["deploy/rbac.yaml"];
    // Neither by any name, nor on kinds that the project does not have.
    assert!(!rbac.contains("validatingadmissionpolicies"), "{rbac}");
    for allowed in [
        "validatingwebhookconfigurations",
        "shop-operator.example.com",
        "shop-operator-webhooks-tls",
    ] {
        assert!(rbac.contains(allowed), "{rbac}");
    }
}

#[test]
fn the_chart_has_what_kustomize_has_in_the_namespace_of_its_release() {
    let files = Folder::project(&["--webhook"]).files();
    for name in ["operator", "rbac", "webhooks"] {
        let chart = render(&files, &format!("deploy/chart/templates/{name}.yaml"));
        let plain = files[&format!("deploy/{name}.yaml")]
            .replace("namespace: shop-operator\n", "namespace: elsewhere\n");
        assert_eq!(documents(&chart), documents(&plain), "{name}");
        for [kind, namespace, name] in keys(&documents(&chart)) {
            let is_cluster = kind.starts_with("Cluster");
            let expected = if is_cluster { "" } else { "elsewhere" };
            assert_eq!(namespace, expected, "{kind} {name}");
        }
    }
    let chart = &documents(&files["deploy/chart/Chart.yaml"])[0];
    assert_eq!(chart["apiVersion"], "v2");
}

/// Checks that the files are as before, but for lines that were inserted and the port of the readiness probe; returns
/// the new lines, by path.
fn inserted(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> BTreeMap<String, Vec<String>> {
    let mut inserted = BTreeMap::new();
    for (path, text) in before {
        let mut old = text.lines().peekable();
        let mut added = Vec::new();
        for line in after[path].lines() {
            if old.next_if_eq(&line).is_none() {
                if line.trim() == "port: webhooks" {
                    assert_eq!(old.next().map(str::trim), Some("port: metrics"));
                }
                added.push(line.trim().to_owned());
            }
        }
        assert_eq!(old.next(), None, "{path}: {}", after[path]);
        if !added.is_empty() {
            inserted.insert(path.clone(), added);
        }
    }
    inserted
}

#[test]
fn an_addition_is_a_file_and_lines_at_the_markers_and_the_rest_stays() {
    let folder = Folder::project(&[]);
    // Code of the user's own, not as rustfmt has it.
    folder.edit(
        "src/lib.rs",
        "use std::net",
        "#[allow(dead_code)] fn own( ) {}\nuse std::net",
    );
    let check = |arguments: &[&str], created: &[&str], lines: &[&str]| {
        let before = folder.files();
        let text = folder.add(arguments).unwrap();
        let after = folder.files();
        let is_new = |path: &&String| !before.contains_key(*path);
        let new: Vec<&str> = after.keys().filter(is_new).map(|it| &**it).collect();
        assert_eq!(new, created, "{text}");
        for path in created {
            assert!(text.contains(&format!("  {path}\n")), "{text}");
        }
        let inserted = inserted(&before, &after);
        let in_lib = &inserted["src/lib.rs"];
        assert_eq!(in_lib, lines);
        inserted
    };
    let kind = ["pub mod big_fox_api;", "big_fox_api::BigFox::crd(),"];
    let changed = check(&["kind", "BigFox"], &["src/big_fox_api.rs"], &kind);
    assert_eq!(changed.len(), 1, "{changed:?}");
    let reconciler = [
        "pub mod den_reconcile;",
        "den_reconcile::register(&operator)?;",
    ];
    check(
        &["reconciler", "den", "--kind", "BigFox"],
        &["src/den_reconcile.rs"],
        &reconciler,
    );
    // The first one brings the server.
    let changed = check(
        &["webhook", "BigFox"],
        &[
            "deploy/chart/templates/webhooks.yaml",
            "deploy/webhooks.yaml",
            "src/big_fox_webhook.rs",
            "src/webhooks.rs",
            "tests/webhooks.rs",
        ],
        &[
            "pub mod big_fox_webhook;",
            "pub mod webhooks;",
            "webhooks::declare(&operator);",
        ],
    );
    assert_eq!(changed["Cargo.toml"], ["\"webhook\","]);
    assert!(changed.contains_key("deploy/operator.yaml"), "{changed:?}");
    let changed = check(
        &["webhook", "Shop"],
        &["src/shop_webhook.rs"],
        &["pub mod shop_webhook;"],
    );
    assert_eq!(
        changed["src/webhooks.rs"],
        ["webhooks = crate::shop_webhook::add(webhooks);"]
    );
}

#[test]
fn scaffolded_webhook_asks_about_new_names_and_changed_specs_only() {
    let files = Folder::project(&["--webhook"]).files();
    let webhook = &files["src/shop_webhook.rs"];
    assert!(
        webhook.contains(".match_condition(\"spec-changed\""),
        "{webhook}"
    );
    assert!(webhook.contains("if is_new && has_dot"), "{webhook}");
}

#[test]
fn what_is_added_later_is_what_a_new_project_has() {
    let (new, added) = (Folder::project(&["--webhook"]), Folder::project(&[]));
    added.add(&["webhook", "Shop"]).unwrap();
    let (new, mut added) = (new.files(), added.files());
    // The permissions are printed by the program, as the next steps say.
    for path in ["deploy/rbac.yaml", "deploy/chart/files/rbac.yaml"] {
        let printed = new[path].clone();
        added.insert(path.to_owned(), printed);
    }
    assert_eq!(
        new.keys().collect::<Vec<_>>(),
        added.keys().collect::<Vec<_>>()
    );
    for (path, text) in &new {
        assert_eq!(added[path], *text, "{path}");
    }
}

#[test]
fn what_cannot_be_added_is_refused_with_a_reason_and_nothing_is_written() {
    let folder = Folder::project(&["--webhook"]);
    folder.add(&["kind", "Fox"]).unwrap();
    folder.add(&["reconciler", "fox"]).unwrap();
    let check = |arguments: &[&str], expected: &str| {
        let before = folder.files();
        let error = folder.add(arguments).unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert_eq!(folder.files(), before, "{error}");
    };
    check(&["kind", "Fox"], "Fox exists already, in src/fox_api.rs");
    check(&["kind", "FOX"], "foxes exists already");
    check(&["kind", "Shop"], "Shop exists already, in src/api.rs");
    check(&["reconciler", "fox"], "the reconciler fox exists already");
    check(
        &["reconciler", "shop"],
        "the reconciler shop exists already",
    );
    check(
        &["reconciler", "den"],
        "no file of src/ has the kind Den; add it by `lariat add kind Den`",
    );
    check(&["webhook", "Shop"], "src/shop_webhook.rs exists already");
    check(&["webhook", "Den"], "no file of src/ has the kind Den");
    folder.edit("src/lib.rs", "// lariat: kinds", "// of others");
    check(
        &["kind", "Den"],
        "src/lib.rs has no line `// lariat: kinds`, above which the addition is named; put it back",
    );
    folder.edit("src/webhooks.rs", "    // lariat: webhooks\n", "");
    check(
        &["webhook", "Fox"],
        "src/webhooks.rs has no line `// lariat: webhooks`",
    );
    fs::remove_file(folder.0.join("src/lib.rs")).unwrap();
    check(&["webhook", "Fox"], "has no src/lib.rs");
    folder.edit(
        "Cargo.toml",
        "[package.metadata.lariat]",
        "[package.metadata.other]",
    );
    check(
        &["kind", "Den"],
        "no `group` below [package.metadata.lariat], which `lariat new` writes: docs/upgrading.md",
    );
    fs::remove_file(folder.0.join("Cargo.toml")).unwrap();
    check(&["kind", "Den"], "has to be a project of `lariat new`");
}

#[test]
fn a_deleted_chart_is_not_missed() {
    let folder = Folder::project(&[]);
    fs::remove_dir_all(folder.0.join("deploy/chart")).unwrap();
    folder.add(&["webhook", "Shop"]).unwrap();
    assert!(!folder.0.join("deploy/chart").exists());
}

#[cfg(unix)]
#[test]
fn the_script_of_the_image_can_be_run() {
    let folder = Folder::project(&[]);
    // Without a builder it says what to install.
    let mut script = Command::new(folder.0.join("scripts/image.sh"));
    let tools = folder.0.join("tools");
    fs::create_dir(&tools).unwrap();
    for tool in ["bash", "dirname"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|folder| folder.join(tool))
            .find(|path| path.is_file());
        std::os::unix::fs::symlink(found.unwrap(), tools.join(tool)).unwrap();
    }
    let ended = script.env("PATH", &tools).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(
        !ended.status.success() && text.contains("no buildah, podman or docker"),
        "{text}"
    );
    // With one, it builds.
    let builder = "#!/usr/bin/env bash\necho \"$@\"\n";
    let buildah = tools.join("buildah");
    fs::write(&buildah, builder).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&buildah, mode).unwrap();
    let mut script = Command::new(folder.0.join("scripts/image.sh"));
    let script = script.env("PATH", format!("{}:/usr/bin:/bin", tools.display()));
    let ended = script.args(["a:1", "--no-cache"]).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(
        text.contains("--file Containerfile --tag a:1 --no-cache ."),
        "{text}"
    );
}
