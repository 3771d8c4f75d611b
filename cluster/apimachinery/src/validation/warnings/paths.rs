//! Files of a volume that overwrite each other.

use std::fmt;

use super::collected::Warnings;
use crate::validation::field::Field;

/// A file, and in projected volumes its source.
struct Source<'a> {
    path: &'a str,
    from: String,
}

/// Warns of files in one volume whose paths are the same or nested.
// `warningsForOverlappingVirtualPaths`. Of two equal paths the kubelet writes the latter; a nested one makes the mount
// fail.
pub(super) fn check(volumes: &Field<'_>, warnings: &mut Warnings) {
    for volume in volumes.items() {
        let name = volume.text_of("name");
        // A volume without `items` has all keys as files, which are not known here.
        for (member, kind, named) in [
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let source = volume.get(member);
            let files = files(&source.get("items"), "");
            let from = described(kind, (!named.is_empty()).then(|| source.text_of(named)));
            check_files(name, &from, files, warnings);
        }
        check_projected(name, &volume.get("projected").get("sources"), warnings);
    }
}

fn described(kind: &str, name: Option<&str>) -> String {
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name:?}"))
}

fn check_projected(volume: &str, sources: &Field<'_>, warnings: &mut Warnings) {
    let mut all = Vec::new();
    for source in sources.items() {
        // `{}` is a valid source and mounts nothing.
        if source.is_void() {
            warnings.add(format!(
                "volume {volume:?} (Projected) has no sources provided"
            ));
            continue;
        }
        all.extend(projected(&source));
    }
    check_files(volume, "Projected", all, warnings);
}

fn projected<'a>(source: &Field<'a>) -> Vec<Source<'a>> {
    let one = |path: &'a str, from: String| vec![Source { path, from }];
    // Go's `switch` takes the first case that holds: a ConfigMap without items does not hide the members after it.
    let has = |name| source.get(name).has("items");
    if has("configMap") {
        let map = source.get("configMap");
        return files(
            &map.get("items"),
            &described("ConfigMap", Some(map.text_of("name"))),
        );
    }
    if has("secret") {
        let secret = source.get("secret");
        return files(
            &secret.get("items"),
            &described("Secret", Some(secret.text_of("name"))),
        );
    }
    if has("downwardAPI") {
        return files(&source.get("downwardAPI").get("items"), "DownwardAPI");
    }
    let token = source.get("serviceAccountToken");
    if token.is_set() {
        return one(token.text_of("path"), "ServiceAccountToken".to_owned());
    }
    let bundle = source.get("clusterTrustBundle");
    if bundle.is_set() {
        let named = if bundle.has("name") {
            "name"
        } else {
            "signerName"
        };
        let from = described("ClusterTrustBundle", Some(bundle.text_of(named)));
        return one(bundle.text_of("path"), from);
    }
    let certificate = source.get("podCertificate");
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let files = parts.map(|(member, from)| (certificate.text_of(member), from));
    let files = files.into_iter().filter(|(path, _)| !path.is_empty());
    files
        .map(|(path, from)| Source {
            path,
            from: from.to_owned(),
        })
        .collect()
}

fn files<'a>(items: &Field<'a>, from: &str) -> Vec<Source<'a>> {
    let items = items.items().map(|item| Source {
        path: item.text_of("path"),
        from: from.to_owned(),
    });
    items.collect()
}

fn check_files(volume: &str, kind: &str, files: Vec<Source<'_>>, warnings: &mut Warnings) {
    let mut known: Vec<Source<'_>> = Vec::new();
    for mut file in files {
        // Slashes at the end are no part of a file's name.
        file.path = file.path.trim_end_matches('/');
        for other in known.iter().filter(|other| file.meets(other)) {
            warnings.add(format!(
                "volume {volume:?} ({kind}): overlapping paths: {file} with {other}"
            ));
        }
        known.push(file);
    }
}

impl Source<'_> {
    /// Returns whether two files conflict: equal paths, or one below the other.
    fn meets(&self, other: &Self) -> bool {
        let is_below =
            // Whole segments are compared: `ab` is not below `a`.
            |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        let (a, b) = (self.path, other.path);
        !a.is_empty() && !b.is_empty() && (a == b || is_below(a, b) || is_below(b, a))
    }
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.path)?;
        if !self.from.is_empty() {
            write!(f, " ({})", self.from)?;
        }
        Ok(())
    }
}
